//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
)

// A network is what lies between a proxy, its clients and its server.
type network int

const (
	relays     network = iota // programs that pass bytes on
	namespaces                // the kernel: the proxy is in a network namespace of its own, which cables lead to
)

// String is the word of the command line.
func (n network) String() string { return [...]string{"relays", "namespaces"}[n] }

// cabled is where the addresses of namespaces are: networks are there to be tried with (RFC 2544).
var cabled = netip.MustParsePrefix("198.18.0.0/15")

// A namespace is a network of the kernel's that a proxy has to itself. Cables lead to it: one from clients, one to the
// server, and one that nobody harms, to ask the proxy how it is.
type namespace struct {
	name               string
	number             int
	near, far, control *cable
}

// canCable returns why there can be no namespaces here, if it is so.
func canCable() error {
	if os.Geteuid() != 0 {
		return errors.New("-network namespaces makes network namespaces, and needs root for that")
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return fmt.Errorf("-network namespaces needs the program ip, of the package iproute2: %w", err)
	}
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("-network namespaces needs the kernel's TUN interfaces: %w", err)
	}
	return nil
}

// newNamespace makes a namespace with its cables.
func newNamespace(ctx context.Context) (_ *namespace, err error) {
	if err := canCable(); err != nil {
		return nil, err
	}
	n := &namespace{}
	if err := n.claim(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	if err := command(ctx, "ip", "-n", n.name, "link", "set", "lo", "up"); err != nil {
		return nil, err
	}
	for i, c := range []**cable{&n.near, &n.far, &n.control} {
		if *c, err = n.lay(ctx, i); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// addresses is how many of them a namespace has: four a cable.
const addresses = 16

// claim makes the namespace, with the first number that no other has: its addresses go by that.
func (n *namespace) claim(ctx context.Context) error {
	for ; n.number < 1<<(32-cabled.Bits())/addresses; n.number++ {
		n.name = fmt.Sprintf("isotap-%d", n.number)
		err := command(ctx, "ip", "netns", "add", n.name)
		if err == nil {
			return nil
		}
		if _, missing := os.Stat(filepath.Join("/run/netns", n.name)); errors.Is(missing, fs.ErrNotExist) ||
			ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("every network namespace to %s exists", n.name)
}

// lay makes the i-th cable and gives its ends their addresses.
func (n *namespace) lay(ctx context.Context, i int) (*cable, error) {
	names := [2]string{fmt.Sprintf("isotap%d-%d", n.number, i), fmt.Sprintf("isotap%d-%dp", n.number, i)}
	c, err := newCable(names, func(ctx context.Context, end int, on bool) error {
		return command(ctx, "ip", n.in(end, "link", "set", names[end],
			map[bool]string{true: "up", false: "down"}[on])...)
	})
	if err != nil {
		return nil, err
	}
	err = command(ctx, "ip", "link", "set", names[1], "netns", n.name)
	for end := range names {
		if err == nil {
			err = command(ctx, "ip", n.in(end, "address", "add", n.address(i, end)+"/30", "dev", names[end])...)
		}
		if err == nil {
			err = c.turn(ctx, end, true)
		}
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// in are arguments of ip's for the namespace in which a cable has this end.
func (n *namespace) in(end int, args ...string) []string {
	if end == 0 {
		return args
	}
	return append([]string{"-n", n.name}, args...)
}

// address is that of an end of the i-th cable: 0 is ours, 1 the proxy's.
func (n *namespace) address(i, end int) string {
	a := cabled.Addr().As4()
	for at, add := 3, n.number*addresses+4*i+1+end; add > 0; at, add = at-1, add>>8 {
		a[at] += byte(add)
	}
	return netip.AddrFrom4(a).String()
}

// connect has the proxy's cable lead to a server of this address, which listens on its port of all our addresses.
func (n *namespace) connect(server string) error {
	at, err := netip.ParseAddrPort(server)
	if err != nil {
		return fmt.Errorf("lay a cable to the server: %w", err)
	}
	n.far.at = fmt.Sprintf("%s:%d", n.address(1, 0), at.Port())
	return nil
}

// listen is where the proxy listens for clients, and admin where it is asked how it is.
func (n *namespace) listen() string { return n.address(0, 1) + ":0" }
func (n *namespace) admin() string  { return n.address(2, 1) + ":0" }

// command is a program's run in the namespace.
func (n *namespace) command(program string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.name, program}, args...)...)
}

// close removes the namespace and the cables.
func (n *namespace) close() (err error) {
	for _, c := range []*cable{n.near, n.far, n.control} {
		if c != nil {
			err = errors.Join(err, c.close())
		}
	}
	return errors.Join(err, command(context.Background(), "ip", "netns", "delete", n.name))
}
