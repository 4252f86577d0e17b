package mysql

import (
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/rewrite"
)

// senderOfAttributes returns what the client's connection attributes say of it, in a handshake response or a
// COM_CHANGE_USER whose name of a plug-in begins at a place. What is malformed the server is left to refuse (MySQL's
// source documentation, "Protocol::HandshakeResponse41").
func senderOfAttributes(payload []byte, plugin int, caps uint32) history.Sender {
	const both = gomysql.CLIENT_PLUGIN_AUTH | gomysql.CLIENT_CONNECT_ATTRS
	if caps&both != both || plugin <= 0 {
		return history.Sender{}
	}
	r := reader{b: payload, pos: plugin}
	r.cString()
	attributes := reader{b: r.lenencBytes()}
	var said rewrite.Said
	for r.err == nil && attributes.err == nil && attributes.pos < len(attributes.b) {
		key, value := string(attributes.lenencBytes()), string(attributes.lenencBytes())
		if attributes.err == nil {
			said.Set(key, value)
		}
	}
	return said.Sender()
}
