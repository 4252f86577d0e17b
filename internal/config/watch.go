package config

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// watchEvery is how often Watch looks at the file. A notification service of the system would be
// quicker, and blind on network file systems and to files that are replaced through a symbolic link.
const watchEvery = time.Second

// Watch calls changed on each SIGHUP, and when the file (if there is one) differs from how it was, until
// ctx ends. From the call on, SIGHUP no longer ends the process.
func Watch(ctx context.Context, file string, changed func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	tick := time.NewTicker(watchEvery)
	seen := stampOf(file)
	go func() {
		defer signal.Stop(hangups)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			case <-tick.C:
				if stampOf(file) == seen {
					continue
				}
			}
			seen = stampOf(file)
			changed()
		}
	}()
}

// A stamp is what of a file changes with its contents; zero when it is not there.
type stamp struct {
	size     int64
	modified time.Time
}

func stampOf(file string) stamp {
	if file == "" {
		return stamp{}
	}
	info, err := os.Stat(file)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}
