package mysql

import (
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"strings"

	driver "github.com/go-sql-driver/mysql"

	"github.com/ringiflow/ringi/outbox"
)

// ErrAgain says that the database ended a transaction, or a statement of it, because
// others were in its way. Nothing is wrong with the transaction: roll it back and do
// the whole of it again.
var ErrAgain = errors.New("the database gave this transaction up in favour of others; roll it back and do all of it again")

// Numbers of errors, the same in MariaDB and MySQL.
const (
	duplicateKey   = 1062
	packetTooLarge = 1153
	lockTimeout    = 1205 // the statement is undone, the transaction is not
	deadlock       = 1213 // the transaction is undone
)

// number is that of the database's error; 0 if it has none.
func number(err error) uint16 {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}

// again adds ErrAgain to an error after which the same transaction may succeed.
func again(err error) error {
	if n := number(err); n == lockTimeout || n == deadlock {
		return fmt.Errorf("%w (%w)", ErrAgain, err)
	}
	return err
}

// leastPacket is a max_allowed_packet that any statement of an insert fits into.
const leastPacket = 2 << 20

// fault is what an error of an insert of so many bytes means.
func fault(err error, size int) error {
	n := number(err)
	switch {
	// The numbers of a key have another index, which only a writer can break who
	// gives numbers of his own.
	case n == duplicateKey && !strings.Contains(err.Error(), "outbox_key"):
		return fmt.Errorf("%w (%w)", outbox.ErrDuplicate, err)
	case n == packetTooLarge, errors.Is(err, driver.ErrPktTooLarge):
		return fmt.Errorf("a message of %d bytes is more than max_allowed_packet of the database, or maxAllowedPacket of the driver, lets through; raise it to %d or more, or store the data elsewhere and send a reference (%w)", size, leastPacket, err)
	case errors.Is(err, driver.ErrInvalidConn), errors.Is(err, sqldriver.ErrBadConn):
		return fmt.Errorf("the connection broke while %d bytes were written; if it does so again, max_allowed_packet of the database is below the %d that messages may need (%w)", size, leastPacket, err)
	}
	return again(err)
}
