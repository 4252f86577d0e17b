package recorder

import (
	"slices"
	"time"
)

// write is the writing goroutine. It ends when the queue is stopped.
func (w *Writer) write() {
	defer close(w.done)
	linger := time.NewTimer(w.opts.SyncEvery)
	linger.Stop()
	defer linger.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var items []item
	var waiting []chan<- error
	var lingers time.Time // the age of the batch that linger is set for
	for {
		due := false
		select {
		case <-w.queue.ready:
		case <-linger.C:
			due = true
		case <-look.C:
			w.lookAtDisk()
		}
		var stopped bool
		items, stopped = w.queue.take(items)
		for i := range items {
			if items[i].flushed != nil {
				waiting = append(waiting, items[i].flushed)
			}
		}
		err := w.add(items)
		if due || stopped || len(waiting) > 0 {
			err = w.commit()
			linger.Stop()
		} else if !w.batch.empty() && !w.batch.since.Equal(lingers) {
			// From when it was queued: it may have waited for the sync of an earlier batch.
			lingers = w.batch.since
			linger.Reset(w.opts.SyncEvery - time.Since(lingers))
		}
		waiting = answer(waiting, err)
		if stopped {
			return
		}
	}
}

func answer(waiting []chan<- error, err error) []chan<- error {
	for _, c := range waiting {
		c <- err
	}
	clear(waiting)
	return waiting[:0]
}

// add encodes items into the batch, writing it whenever it is full, and lets go of them. The error is that of the last
// writing: what could not be written stays in the batch.
func (w *Writer) add(items []item) (err error) {
	var size int64
	for i := range items {
		w.addOne(&items[i])
		if w.batch.full() {
			err = w.commit()
		}
		size += items[i].size
		items[i] = item{}
		// Not after each: every release wakes all who wait.
		if size > w.opts.QueueBytes/8 {
			w.queue.release(size)
			size = 0
		}
	}
	if size > 0 {
		w.queue.release(size)
	}
	return err
}

func (w *Writer) addOne(it *item) {
	if w.halt.err != nil && w.leave(it) {
		return
	}
	if w.batch.empty() {
		w.batch.since = it.queued
	}
	switch {
	case it.txn != nil:
		w.batch.txn(it.txn)
		w.txns.Add(1)
		w.stmts.Add(uint64(len(it.txn.Stmts)))
	case it.session != nil:
		w.batch.session(it.session)
	case it.matches != nil:
		w.batch.addMatches(it.matches)
	case it.definition != nil:
		w.batch.addDefinition(it.definition)
	case it.defined != nil:
		w.batch.addDefined(it.defined)
	case it.logged != nil:
		w.batch.addLogged(it.logged)
		w.logTxns.Add(1)
		w.logWrites.Add(uint64(len(it.logged.Writes)))
	case it.stretch != nil:
		w.batch.addStretch(it.stretch)
		w.stretches = slices.Grow(w.stretches, 1)[:max(len(w.stretches), int(it.stretch.number)+1)]
		w.stretches[it.stretch.number] = it.stretch.stretch
	}
	w.bytes.Store(w.batch.written)
}

// commit writes the batch, unless that failed and the disk has not been seen to be better since.
func (w *Writer) commit() error {
	if w.halt.err != nil {
		return w.halt.err
	}
	if w.batch.empty() {
		return nil
	}
	began := time.Now()
	w.syncBegan.Store(began.UnixNano())
	err := w.batch.commit(w.opts.commitFree())
	took := time.Since(began)
	w.longestSync.Store(max(w.longestSync.Load(), int64(took)))
	w.syncBegan.Store(0)
	if err != nil {
		return w.stop(err)
	}
	w.syncs.Add(1)
	w.syncTime.Add(int64(took))
	w.lastSync.Store(began.Add(took).UnixNano())
	return nil
}
