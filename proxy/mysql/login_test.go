package mysql

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/internal/mutate"
	"github.com/isotap/isotap/proxy/session"
)

var testKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 1024) })

var testCaps = uint32(gomysql.CLIENT_PROTOCOL_41 | gomysql.CLIENT_SECURE_CONNECTION | gomysql.CLIENT_PLUGIN_AUTH |
	gomysql.CLIENT_LONG_PASSWORD | gomysql.CLIENT_SSL)

// greet returns a session that has passed a server's greeting on.
func greet(t *testing.T, cfg Config) *Session {
	t.Helper()
	cfg.Key = testKey
	s := NewSession(cfg)
	b := append([]byte("\x0a9.7.0\x00\x01\x00\x00\x00abcdefgh\x00"), byte(testCaps), byte(testCaps>>8), 33, 2, 0,
		byte(testCaps>>16), byte(testCaps>>24), 21)
	b = append(b, make([]byte, 10)...)
	packet, _ := appendPacket(nil, 0, append(b, "ijklmnopqrst\x00caching_sha2_password\x00"...))
	if err := s.FromServer(0, packet); err != nil {
		t.Fatal(err)
	}
	s.Output()
	return s
}

// head is the beginning of a handshake response, which is also a request for TLS.
func head(caps uint32) []byte {
	return append([]byte{byte(caps), byte(caps >> 8), byte(caps >> 16), byte(caps >> 24), 0, 0, 0,
		1, 33}, make([]byte, 23)...)
}

func tlsRequest() []byte {
	packet, _ := appendPacket(nil, 1, head(testCaps))
	return packet
}

func loginPacket(seq byte, caps uint32) []byte {
	packet, _ := appendPacket(nil, seq, append(head(caps), "ann\x00\x03abccaching_sha2_password\x00"...))
	return packet
}

// TestBytesBehindTLSRequestsAreNotTaken: bytes behind a request for TLS are not taken.
func TestBytesBehindTLSRequestsAreNotTaken(t *testing.T) {
	s := greet(t, Config{ClientTLS: session.MayTLS})
	request := tlsRequest()
	// What stands behind it may be the handshake, or a login that somebody slipped in.
	n, err := s.FromClient(0, append(bytes.Clone(request), loginPacket(2, testCaps)...))
	if err != nil || n != len(request) {
		t.Fatalf("the session took %d bytes of %d: %v", n, len(request), err)
	}
	if s.Upgrade() != session.ClientLeg {
		t.Fatal("the session does not ask for TLS")
	}
	if _, toServer := s.Output(); len(toServer) > 0 {
		t.Errorf("the server is sent %q", toServer)
	}
	s.Upgraded(0, nil, nil)
	if _, err := s.FromClient(0, loginPacket(2, testCaps)); err != nil {
		t.Fatal(err)
	}
	_, toServer := s.Output()
	if want := loginPacket(1, testCaps&^gomysql.CLIENT_SSL); !bytes.Equal(toServer, want) {
		t.Errorf("the server is sent\n%q, want\n%q", toServer, want)
	}
}

func TestEachLegCountsItsOwnPackets(t *testing.T) {
	s := greet(t, Config{ServerTLS: session.MustTLS})
	if _, err := s.FromClient(0, loginPacket(1, testCaps&^gomysql.CLIENT_SSL)); err != nil {
		t.Fatal(err)
	}
	_, toServer := s.Output()
	if want := tlsRequest(); !bytes.Equal(toServer, want) || s.Upgrade() != session.ServerLeg {
		t.Fatalf("the server is sent %q, want %q", toServer, want)
	}
	s.Upgraded(0, nil, nil)
	if _, toServer = s.Output(); !bytes.Equal(toServer, loginPacket(2, testCaps)) {
		t.Errorf("the server is sent %q, want %q", toServer, loginPacket(2, testCaps))
	}
	ok, _ := appendPacket(nil, 3, []byte{markOK, 0, 0, 2, 0, 0, 0})
	if err := s.FromServer(0, ok); err != nil {
		t.Fatal(err)
	}
	if toClient, _ := s.Output(); len(toClient) < 4 || toClient[3] != 2 {
		t.Errorf("the client, who counts to 2, is sent %q", toClient)
	}
}

// TestForgedBytesBeforeTLSEndTheSession: bytes in the servers name before TLS end the session.
func TestForgedBytesBeforeTLSEndTheSession(t *testing.T) {
	s := greet(t, Config{ServerTLS: session.MustTLS})
	if err := s.FromServer(0, []byte{7, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FromClient(0, loginPacket(1, testCaps&^gomysql.CLIENT_SSL)); err != nil {
		t.Fatal(err)
	}
	if toClient, toServer := s.Output(); !s.Done() || len(toServer) > 0 ||
		!strings.Contains(string(toClient), "before TLS") {
		t.Errorf("the session goes on: the client is sent %q, the server %q", toClient, toServer)
	}
}

// TestLongPacketsOfALoginAreRefused has a client that is not logged in begin packets of many lengths: of one beyond the
// bound not even the head is kept.
func TestLongPacketsOfALoginAreRefused(t *testing.T) {
	for name, before := range map[string]func(s *Session) error{
		"handshake response": func(*Session) error { return nil },
		"answer of a plug-in": func(s *Session) error {
			_, err := s.FromClient(0, loginPacket(1, testCaps&^gomysql.CLIENT_SSL))
			return err
		},
	} {
		for _, n := range []int{1 << 10, maxLogin - 1, maxLogin, maxLogin + 1, maxPayload} {
			t.Run(fmt.Sprintf("%s of %d bytes", name, n), func(t *testing.T) {
				s := greet(t, Config{})
				if err := before(s); err != nil {
					t.Fatal(err)
				}
				s.Output()
				if _, err := s.FromClient(0, []byte{byte(n), byte(n >> 8), byte(n >> 16), 3, 'a'}); err != nil {
					t.Fatal(err)
				}
				toClient, toServer := s.Output()
				refused := s.Done() && bytes.Contains(toClient, []byte("\xff\x81\x04#08S01Got a packet bigger than"))
				if want := n >= maxLogin; refused != want || len(toServer) > 0 {
					t.Errorf("refused: %v; the client is sent %q, the server %q", refused, toClient, toServer)
				}
				if kept := cap(s.clientPackets.packet) + cap(s.clientPackets.payload); kept > 2*maxLogin {
					t.Errorf("%d bytes are kept for it", kept)
				}
			})
		}
	}
}

// TestGreetingOffersWhatIsotapUnderstands has a server offer everything, and a client ask for it all the same.
func TestGreetingOffersWhatIsotapUnderstands(t *testing.T) {
	const bulk, all = 1 << 2, 0xff // of MariaDB's extended capabilities
	caps := ^uint32(gomysql.CLIENT_LONG_PASSWORD)
	s := NewSession(Config{})
	b := append([]byte("\x0a5.5.5-10.11.6-MariaDB\x00\x01\x00\x00\x00abcdefgh\x00"), byte(caps), byte(caps>>8), 33, 2, 0,
		byte(caps>>16), byte(caps>>24), 21, 0, 0, 0, 0, 0, 0, all, 0, 0, 0)
	packet, _ := appendPacket(nil, 0, append(b, "ijklmnopqrst\x00mysql_native_password\x00"...))
	if err := s.FromServer(0, packet); err != nil {
		t.Fatal(err)
	}
	toClient, _ := s.Output()
	at := bytes.Index(toClient, []byte("abcdefgh\x00")) + 9
	offered := binary.LittleEndian.Uint16(toClient[at:])
	high := binary.LittleEndian.Uint16(toClient[at+5:])
	maria := binary.LittleEndian.Uint32(toClient[at+14:])
	const masked = gomysql.CLIENT_QUERY_ATTRIBUTES | gomysql.CLIENT_OPTIONAL_RESULTSET_METADATA | gomysql.CLIENT_SSL
	if got := uint32(offered) | uint32(high)<<16; got != caps&^masked || got&gomysql.CLIENT_COMPRESS == 0 {
		t.Errorf("capabilities %#x are offered, not %#x", got, caps&^masked)
	}
	if maria&bulk != 0 || maria != mariaExtendedMetadata {
		t.Errorf("MariaDB's capabilities %#x are offered", maria)
	}
	const lacking = gomysql.CLIENT_SSL | gomysql.CLIENT_CONNECT_ATTRS | gomysql.CLIENT_CONNECT_WITH_DB
	login := append(head(caps &^ lacking)[:loginHead-4], all, 0, 0, 0)
	login = append(login, "ann\x00\x00"...)
	packet, _ = appendPacket(nil, 1, append(login, "mysql_native_password\x00\x00"...))
	if _, err := s.FromClient(0, packet); err != nil {
		t.Fatal(err)
	}
	_, toServer := s.Output()
	if len(toServer) < headerBytes+loginHead {
		t.Fatalf("the server is sent %q", toServer)
	}
	asked := binary.LittleEndian.Uint32(toServer[headerBytes:])
	if maria := binary.LittleEndian.Uint32(toServer[headerBytes+loginHead-4:]); asked&masked != 0 || maria&bulk != 0 {
		t.Errorf("the server is asked for %#x, and MariaDB's %#x", asked, maria)
	}
}

func TestFailedTLSIsToldToTheClient(t *testing.T) {
	s := greet(t, Config{ServerTLS: session.MayTLS})
	s.FromClient(0, loginPacket(1, testCaps&^gomysql.CLIENT_SSL))
	s.Output()
	s.Upgraded(0, nil, errors.New("x509: unknown authority"))
	if toClient, toServer := s.Output(); !s.Done() || len(toServer) > 0 ||
		!strings.Contains(string(toClient), "unknown authority (see --upstream-tls") {
		t.Errorf("the client is sent %q, the server %q", toClient, toServer)
	}
}

// TestPasswordsAreNotSentOverAPlainLeg asks for the password in each way that shows it, of a client on TLS
// whose way to the server is plain.
func TestPasswordsAreNotSentOverAPlainLeg(t *testing.T) {
	const secret = "s3cret phrase"
	for _, plugin := range []string{gomysql.AUTH_CLEAR_PASSWORD, dialogPlugin, gomysql.AUTH_SHA256_PASSWORD,
		gomysql.AUTH_CACHING_SHA2_PASSWORD} {
		t.Run(plugin, func(t *testing.T) {
			s := greet(t, Config{ClientTLS: session.MayTLS})
			s.FromClient(0, tlsRequest())
			s.Upgraded(0, nil, nil)
			answer := append(append([]byte{byte(len(secret) + 1)}, secret...), 0)
			if plugin == gomysql.AUTH_CACHING_SHA2_PASSWORD {
				answer = []byte("\x03abc")
			}
			login, _ := appendPacket(nil, 2,
				append(append(append(head(testCaps), "ann\x00"...), answer...), plugin+"\x00"...))
			if _, err := s.FromClient(0, login); err != nil {
				t.Fatal(err)
			}
			_, sent := s.Output()
			toServer := bytes.Clone(sent)
			ask := "\xfe" + plugin + "\x00abcdefghijklmnopqrst\x00"
			if plugin == gomysql.AUTH_CACHING_SHA2_PASSWORD {
				ask = "\x01\x04"
			}
			packet, _ := appendPacket(nil, 2, []byte(ask))
			if err := s.FromServer(0, packet); err != nil {
				t.Fatal(err)
			}
			toClient, _ := s.Output()
			if refused := strings.Contains(string(toClient), "--upstream-tls"); refused != s.Done() {
				t.Fatalf("the client is sent %q", toClient)
			}
			packet, _ = appendPacket(nil, 4, append([]byte(secret), 0))
			if _, err := s.FromClient(0, packet); err != nil {
				t.Fatal(err)
			}
			_, sent = s.Output()
			if toServer = append(toServer, sent...); bytes.Contains(toServer, []byte(secret)) {
				t.Errorf("the server is sent %q", toServer)
			}
		})
	}
}

// TestChangeOfUserNeedsBothLegsSafe: change of user does not pass where only one leg is safe.
func TestChangeOfUserNeedsBothLegsSafe(t *testing.T) {
	for _, local := range []bool{false, true} {
		s := loggedIn(t, 0)
		s.client.local = local
		for _, payload := range []string{"\x7funknown", "\x03one", "\x11ann\x00\x00"} {
			packet, _ := appendPacket(nil, 0, []byte(payload))
			for i := range packet { // however it arrives
				if _, err := s.FromClient(0, packet[i:i+1]); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, toServer := s.Output()
		if passed := bytes.Contains(toServer, []byte("ann")); passed == local || s.Done() != local ||
			!bytes.Contains(toServer, []byte("\x03one")) {
			t.Errorf("client on a socket: %v; the server is sent %q", local, toServer)
		}
	}
}

// FuzzLogin gives a session that is logging in whatever either side may send.
func FuzzLogin(f *testing.F) {
	f.Add([]byte("C\x00"+string(loginPacket(1, testCaps))), byte(0))
	f.Add(append([]byte("C\x00"), tlsRequest()...), byte(5))
	mutate.Fuzz(f, func(t *testing.T, script []byte, legs byte) {
		s := greet(t, Config{ClientTLS: session.TLSUse(legs % 3), ServerTLS: session.TLSUse(legs / 3 % 3),
			Options: session.Options{ClientLocal: legs&0x40 != 0, ServerLocal: legs&0x80 != 0}})
		for len(script) > 2 && !s.Done() {
			n := min(2+int(script[1]), len(script))
			piece := bytes.Clone(script[2:n])
			var err error
			switch {
			case s.Upgrade() != session.NoLeg:
				s.Upgraded(0, nil, nil)
			case script[0] == 'C':
				_, err = s.FromClient(0, piece)
			case script[0] == 'c':
				packet, _ := appendPacket(nil, s.client.seq+1, piece)
				_, err = s.FromClient(0, packet)
			default:
				packet, _ := appendPacket(nil, s.server.seq+1, piece)
				err = s.FromServer(0, packet)
			}
			s.Output()
			if err != nil {
				break
			}
			script = script[n:]
		}
		s.ServerClosed(0)
		if !s.Done() {
			t.Fatal("the session goes on without its server")
		}
	})
}

// A client need not wait for the end of its login before it begins its first command.
func TestCommandBegunDuringLoginIsKept(t *testing.T) {
	command, _ := appendPacket(nil, 0, append([]byte{gomysql.COM_QUERY}, "SELECT 1"...))
	ok, _ := appendPacket(nil, 2, []byte{markOK, 0, 0, 2, 0, 0, 0})
	for at := 1; at < len(command); at++ {
		s := greet(t, Config{})
		give := func(b []byte) {
			t.Helper()
			if n, err := s.FromClient(0, b); err != nil || n != len(b) {
				t.Fatalf("the session took %d bytes of %d: %v", n, len(b), err)
			}
		}
		give(loginPacket(1, testCaps&^gomysql.CLIENT_SSL))
		give(command[:at])
		s.Output()
		if err := s.FromServer(0, ok); err != nil {
			t.Fatal(err)
		}
		give(command[at:])
		if _, toServer := s.Output(); !bytes.Equal(toServer, command) {
			t.Errorf("cut at %d, the server is sent %q", at, toServer)
		}
	}
}

// TestLostFileEndsTheSession: file that nobody has any more ends the session.
func TestLostFileEndsTheSession(t *testing.T) {
	s := greet(t, Config{})
	give := func(seq byte, payload string) {
		t.Helper()
		packet, _ := appendPacket(nil, seq, []byte(payload))
		if err := s.FromServer(0, packet); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.FromClient(0, loginPacket(1, testCaps&^gomysql.CLIENT_SSL)); err != nil {
		t.Fatal(err)
	}
	give(2, "\x00\x00\x00\x02\x00\x00\x00")
	load, _ := appendPacket(nil, 0, []byte("\x03LOAD DATA LOCAL INFILE 'f' INTO TABLE t"))
	if _, err := s.FromClient(0, load); err != nil {
		t.Fatal(err)
	}
	s.ClientClosed(0)
	if s.Done() {
		t.Fatal("the session is done before the reply has come")
	}
	if give(1, "\xfbf"); !s.Done() {
		t.Error("the session waits for a file although its client is gone")
	}
}
