package postgres

import (
	"github.com/isotap/isotap/history"
	sqlpostgres "github.com/isotap/isotap/rewrite/postgres"
)

// settings is what the session's statements are read under. The server is asked for it at the start and
// after every statement that may have changed it.
type settings struct {
	database string
	env      sqlpostgres.Session
	level    history.Level // default_transaction_isolation
	known    bool
}
