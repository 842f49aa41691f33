package mysql

import (
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

// fault is what an error of an insert means.
func fault(err error) error {
	n := number(err)
	switch {
	// The numbers of a key have another index, which only a writer can break who
	// gives numbers of his own.
	case n == duplicateKey && !strings.Contains(err.Error(), "outbox_key"):
		return fmt.Errorf("%w (%w)", outbox.ErrDuplicate, err)
	case n == packetTooLarge, errors.Is(err, driver.ErrPktTooLarge):
		return fmt.Errorf("the message is larger than max_allowed_packet of the database, or maxAllowedPacket of the driver, allows; raise it to %d or more, or store the data elsewhere and send a reference (%w)", 2*statementBytes, err)
	}
	return again(err)
}
