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
		case <-w.syncer.news:
			_ = w.settle() // Err has it
			continue
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
			// From when it was queued: it may have waited while an earlier batch was written.
			lingers = w.batch.since
			linger.Reset(w.opts.SyncEvery - time.Since(lingers))
		}
		waiting = w.answer(waiting, err)
		if stopped {
			return
		}
	}
}

// answer sees to it that those who wait are answered: at once with an error, otherwise when all is synced that was
// written before.
func (w *Writer) answer(waiting []chan<- error, err error) []chan<- error {
	if err != nil {
		answer(waiting, err)
	} else if len(waiting) > 0 {
		w.syncer.want(w.batch.at, waiting...)
	}
	clear(waiting)
	return waiting[:0]
}

func answer(waiting []chan<- error, err error) {
	for _, c := range waiting {
		c <- err
	}
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

// maxUnsynced is how many bytes may wait to be synced before no more are written.
const maxUnsynced = 8 << 20

// commit writes the batch and asks for a sync, unless that failed and the disk has not been seen to be better since.
func (w *Writer) commit() error {
	if err := w.settle(); err != nil || w.batch.empty() {
		return err
	}
	w.writing.start()
	err := w.batch.commit(w.opts.commitFree())
	w.writing.stop()
	if err != nil {
		return w.stop(err)
	}
	w.syncer.want(w.batch.at)
	for err == nil && w.batch.unsyncedBytes() > maxUnsynced {
		<-w.syncer.news
		err = w.settle()
	}
	return err
}

// settle takes notice of what is synced, and of a sync that failed.
func (w *Writer) settle() error {
	if w.halt.err != nil {
		return w.halt.err
	}
	batch, err := w.syncer.state()
	w.batch.synced(batch)
	if err != nil {
		return w.stopUnsynced(err)
	}
	return nil
}

// sync waits until what was written is synced.
func (w *Writer) sync() error {
	synced := make(chan error, 1)
	w.syncer.want(w.batch.at, synced)
	return <-synced
}
