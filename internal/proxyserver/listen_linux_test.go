package proxyserver

import "testing"

// TestSharedListenerChoosesWhoGetsClients fails where the socket is one of Multipath TCP, which Go makes by default.
func TestSharedListenerChoosesWhoGetsClients(t *testing.T) {
	l, err := listenShared("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := l.(*shared).direct(0); err != nil {
		t.Error(err)
	}
}
