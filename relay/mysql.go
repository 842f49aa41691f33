package relay

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/ringiflow/ringi/outbox/mysql"
)

const (
	mysqlPort = "3306"

	// mysqlDial bounds a connect, which else would wait for as long as the system does.
	mysqlDial = 10 * time.Second
)

// errMySQLName tells how a database of MySQL is named.
var errMySQLName = errors.New("the database cannot be read: write mysql://user:password@host:port/database, with %XX for odd characters in the password; parameters of the driver, such as ?tls=true, may follow")

// connectMySQL opens a database of MariaDB or MySQL.
func connectMySQL(database string) (*Database, error) {
	config, err := mysqlConfig(database)
	if err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		return nil, errMySQLName
	}
	db := sql.OpenDB(bounded{connector})
	db.SetMaxOpenConns(poolSize)
	db.SetMaxIdleConns(poolSize)
	source := mysql.New(db)
	return &Database{Dialect: MySQL, DB: db, Outbox: source, Fleet: source, Name: schemeMySQL + config.Addr + "/" + config.DBName}, nil
}

// idleTransaction has MariaDB end a transaction in which nothing happened for so
// many seconds: those of a relay take milliseconds, and one that is stopped in the
// middle would keep its locks from the others. MySQL has no such setting, and takes
// the second half for a comment.
const idleTransaction = `set @ringi = 0 /*M! , session idle_transaction_timeout = 10 */`

// bounded makes connections whose transactions cannot stand still.
type bounded struct{ sqldriver.Connector }

// Connect implements driver.Connector.
func (c bounded) Connect(ctx context.Context) (sqldriver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := conn.(sqldriver.ExecerContext).ExecContext(ctx, idleTransaction, nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// mysqlConfig reads mysql://user:password@host:port/database?parameters. No error
// has the text, which may have a password.
func mysqlConfig(database string) (*driver.Config, error) {
	u, err := url.Parse(database)
	if err != nil {
		return nil, errMySQLName
	}
	named := driver.NewConfig()
	named.User = u.User.Username()
	named.Passwd, _ = u.User.Password()
	named.Net, named.Addr = "tcp", u.Host
	if u.Port() == "" {
		named.Addr = net.JoinHostPort(u.Hostname(), mysqlPort)
	}
	named.DBName = strings.TrimPrefix(u.Path, "/")
	if named.DBName == "" || strings.Contains(named.DBName, "/") || u.Hostname() == "" {
		return nil, errMySQLName
	}
	text := named.FormatDSN()
	if u.RawQuery != "" {
		joint := "?"
		if strings.Contains(text[strings.LastIndexByte(text, '/'):], "?") {
			joint = "&"
		}
		text += joint + u.RawQuery
	}
	config, err := driver.ParseDSN(text)
	if err != nil {
		return nil, errMySQLName
	}
	config.InterpolateParams = true     // a statement is one round trip
	config.Logger = &driver.NopLogger{} // what it would say on standard error comes as an error
	if config.Timeout == 0 {
		config.Timeout = mysqlDial
	}
	return config, nil
}
