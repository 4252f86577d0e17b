package mysql

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
	sqlmysql "github.com/isotap/isotap/rewrite/mysql"
)

// An upload is a payload of the client that is passed on as it arrives: a piece of a file, or the rest
// of a long command.
type upload struct {
	open bool // a long command is under way
	left int  // bytes still to come of the packet
	size int  // of the payload so far
	long bool // the next packet goes on with the payload
	seq  byte // of the packet before
}

// passUp passes on what p holds of the client's next packet, and says whether that was the end of a
// payload.
func (s *Session) passUp(p []byte) (n int, ended bool) {
	u := &s.upload
	if u.left == 0 {
		n = min(headerBytes-len(s.clientBuf), len(p))
		s.clientBuf = append(s.clientBuf, p[:n]...)
		if len(s.clientBuf) < headerBytes {
			return n, false
		}
		u.left = payloadLen(s.clientBuf)
		if !u.long {
			u.size = 0
		}
		u.size += u.left
		u.long = u.left == maxPayload
		s.toServer = append(s.toServer, s.clientBuf...)
		s.clientBuf = s.clientBuf[:0]
		return n, u.left == 0
	}
	n = min(u.left, len(p))
	s.toServer = append(s.toServer, p[:n]...)
	u.left -= n
	return n, u.left == 0 && !u.long
}

// passFile passes a file on that the server asked for. An empty payload ends it.
func (s *Session) passFile(p []byte) int {
	n, ended := s.passUp(p)
	if ended && s.upload.size == 0 {
		s.phase = phaseCommand
	}
	return n
}

// passRest passes the rest of a long command on.
func (s *Session) passRest(p []byte) int {
	n, ended := s.passUp(p)
	if ended {
		s.upload = upload{}
	}
	return n
}

// tooLong is the plan for a statement that is not kept in memory whole. It may be anything.
var tooLong = &sqlmysql.Plan{Statement: rewrite.Statement{Observation: history.Opaque, Reason: history.ReasonTooLong},
	Txn: sqlmysql.TxnEffect{Ends: true}, Session: sqlmysql.SessionEffect{Changes: true},
	Schema: sqlmysql.SchemaEffect{Changes: true}}

// beginLong passes on what has come of a command that grows long, if it can go on without being
// looked at further. What has come is whole packets.
func (s *Session) beginLong() {
	parts := s.clientPayload
	if parts[0] == gomysql.COM_STMT_SEND_LONG_DATA {
		if !s.addressLongData(parts) {
			return
		}
	} else {
		x := s.passedLong(parts)
		if x == nil {
			return
		}
		s.exchanges = append(s.exchanges, x)
	}
	for seq := byte(0); len(parts) > 0; seq++ {
		s.toServer = append(s.toServer, 0xff, 0xff, 0xff, seq)
		s.toServer = append(s.toServer, parts[:maxPayload]...)
		parts = parts[maxPayload:]
	}
	s.clientPayload = nil
	s.upload = upload{open: true, long: true}
}

// passCopy passes bytes of a session on that is not followed any more. Where only one leg is safe, a
// change of user cannot be let through: its password could go where it must not.
func (s *Session) passCopy(p []byte) int {
	u := &s.upload
	if u.left > 0 {
		n := min(u.left, len(p))
		s.toServer = append(s.toServer, p[:n]...)
		u.left -= n
		return n
	}
	need := headerBytes
	if len(s.clientBuf) >= headerBytes {
		need++
	}
	n := min(need-len(s.clientBuf), len(p))
	s.clientBuf = append(s.clientBuf, p[:n]...)
	if len(s.clientBuf) < headerBytes || len(s.clientBuf) == headerBytes && payloadLen(s.clientBuf) > 0 {
		return n
	}
	begins := s.clientBuf[3] == 0 && u.seq != 0xff // and not a file's or a long command's packet number 256
	u.seq = s.clientBuf[3]
	if begins && len(s.clientBuf) > headerBytes && s.clientBuf[headerBytes] == gomysql.COM_CHANGE_USER {
		s.client.seq = 0
		s.turnAway(gomysql.ER_NOT_SUPPORTED_AUTH_MODE, sqlstateConnectionRejected,
			"isotap cannot change the user of a session that it does not follow any more "+
				"where only one of its connections is encrypted: connect anew")
		return n
	}
	u.left = headerBytes + payloadLen(s.clientBuf) - len(s.clientBuf)
	s.toServer = append(s.toServer, s.clientBuf...)
	s.clientBuf = s.clientBuf[:0]
	return n
}

// alike reports whether passwords are as safe on one leg as on the other.
func (s *Session) alike() bool {
	return s.client.tls == s.server.tls && s.client.local == s.server.local
}

// Copying says that the session only passes bytes on from now on: the caller may do so itself, once it
// has sent the Output.
func (s *Session) Copying() bool { return s.phase == phaseCopy && s.alike() }
