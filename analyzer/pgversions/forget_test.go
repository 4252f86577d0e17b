package pgversions_test

import (
	"slices"
	"testing"
	"time"

	"github.com/isotap/isotap/analyzer/pgversions"
	"github.com/isotap/isotap/history"
	"github.com/isotap/isotap/internal/numset"
)

// A version of a transaction that is known to have been recorded is no stranger's, and has a name of its own.
func TestVersionsOfForgottenTransactionsAreNotUnrecorded(t *testing.T) {
	infos := []history.Info{{Run: testRun, Started: time.Unix(1, 0), Horizon: 100,
		Server: history.Server{Engine: "postgresql", System: 7}}}
	txns := []*history.Txn{(&client{status: yes, shown: []shown{
		{1, read, "a", at(150, 1)}, {1, read, "b", at(90, 1)}, {1, read, "c", at(160, 1)},
	}}).txn(testRun, 5)}
	var xids numset.Set
	xids.Add(150)
	r := pgversions.New()
	r.Forget(testRun, &xids)
	got, err := r.Translate(infos, nil, txns)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"T5.1 read a f150", "T5.1 read b 0", "T5.1 read c x160"}; !slices.Equal(names(got), want) {
		t.Errorf("got %q, want %q", names(got), want)
	}
}

// Before 18 an UPDATE does not tell what it replaced.
func TestFirstReplacementTakesWhatWasForgottenLast(t *testing.T) {
	infos := []history.Info{{Run: testRun, Started: time.Unix(1, 0), Horizon: 100,
		Server: history.Server{Engine: "postgresql", System: 7}}}
	txns := []*history.Txn{
		(&client{status: yes, shown: []shown{{1, read, "a", at(150, 1)},
			{2, update, "a", left(161, 3, 30)}}}).txn(testRun, 5),
		(&client{status: yes, shown: []shown{{1, read, "a", at(150, 1)}, {2, update, "a", left(160, 2, 20)},
			{3, update, "b", left(160, 2, 21)}}}).txn(testRun, 6),
	}
	var xids numset.Set
	xids.Add(150)
	r := pgversions.New()
	r.Forget(testRun, &xids)
	got, err := r.Translate(infos, nil, txns)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"T5.1 read a f150", "T5.2 update a T6.2", "T6.1 read a f150",
		"T6.2 update a f150", "T6.3 update b 0"}
	if !slices.Equal(names(got), want) {
		t.Errorf("got %q, want %q", names(got), want)
	}
}
