package order

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
)

//go:embed order_fulfilment.yaml
var definitionFile string

//go:embed orders.jsonl
var ordersFile string

// DefinitionName is the name that the process of Definition carries.
const DefinitionName = "order_fulfilment"

// ApprovalStep is the id of the step at which two people of finance decide.
const ApprovalStep = "approve"

// MailStep is the id of the step that sends the mail, the only step whose
// outcome may stay unknown.
const MailStep = "confirm"

// approvalAbove is the amount in yen from which on people decide; the
// definition says the same in its `when`.
const approvalAbove = 100000

// Definition returns the process as YAML, as it is published.
func Definition() []byte { return []byte(definitionFile) }

// OrdersFile returns the first n lines of the embedded orders.jsonl, byte for
// byte, and all lines if n is 0 or larger than their number.
func OrdersFile(n int) []byte {
	rest, size := ordersFile, 0
	for line := 0; len(rest) > 0 && (n <= 0 || line < n); line++ {
		end := bytes.IndexByte([]byte(rest), '\n') + 1
		if end == 0 {
			end = len(rest)
		}
		size, rest = size+end, rest[end:]
	}
	return []byte(ordersFile[:size])
}

// Lines returns the first n lines of the embedded orders, and all if n is 0 or
// larger than their number.
func Lines(n int) ([]Line, error) { return ParseLines(bytes.NewReader(OrdersFile(n))) }

// A Line is one order, the faults that will befall it, the people who decide
// about it, and what must have come of it in the end.
type Line struct {
	Order  Order   `json:"order"`
	Faults []Fault `json:"faults"`
	People []Vote  `json:"people,omitempty"`
	Expect Expect  `json:"expect"`

	// Input is the order as it stands in the file: the input of its run.
	Input json.RawMessage `json:"-"`
}

// An Order is what a customer bought.
type Order struct {
	OrderID  string      `json:"order_id"`
	Customer string      `json:"customer"` // an address that mail reaches
	Amount   json.Number `json:"amount"`   // yen, an exact decimal
	Items    []Item      `json:"items"`
}

// An Item is one position of an order.
type Item struct {
	SKU string `json:"sku"`
	Qty int    `json:"qty"`
}

// A Vote is one person's decision about an order that waits for approval.
type Vote struct {
	Who  string `json:"who"`  // alice or bob
	Vote string `json:"vote"` // approve or reject
}

// Expect is what must have come of an order.
type Expect struct {
	Status string `json:"status"` // completed, failed, compensated or cancelled
	Books  Books  `json:"books"`
}

// Books counts the calls that had an effect, for one order or for many.
type Books struct {
	Charged  int `json:"charged"`
	Refunded int `json:"refunded"`
	Reserved int `json:"reserved"`
	Released int `json:"released"`
	Shipped  int `json:"shipped"` // bookings, also those that were cancelled later
	Mails    int `json:"mails"`   // as an expectation: at most so many
}

// NeedsApproval tells whether two people of finance have to decide about the
// order before the customer is charged.
func (o Order) NeedsApproval() bool {
	amount, ok := new(big.Rat).SetString(o.Amount.String())
	return ok && amount.Cmp(big.NewRat(approvalAbove, 1)) > 0
}

// CancelAtApproval tells whether whoever drives the demo has to cancel the
// order's run while it waits for its approval.
func (l Line) CancelAtApproval() bool { return l.has(CancelAtApproval) }

// Kind names the story of the line: its first fault, or what people do with
// it, or Plain.
func (l Line) Kind() Kind {
	if len(l.Faults) > 0 {
		return l.Faults[0].Kind
	}
	for _, v := range l.People {
		if v.Vote == "reject" {
			return Rejected
		}
	}
	if len(l.People) > 0 {
		return Approved
	}
	return Plain
}

func (l Line) has(kind Kind) bool {
	for _, f := range l.Faults {
		if f.Kind == kind {
			return true
		}
	}
	return false
}

// ParseLines reads orders in the form of orders.jsonl. An error names the line
// that could not be read and says what is wrong with it.
func ParseLines(r io.Reader) ([]Line, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("read orders: %w", err)
	}
	var lines []Line
	seen := map[string]int{}
	for i, text := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		line, err := parseLine(text)
		if err != nil {
			return nil, fmt.Errorf("orders line %d: %w", i+1, err)
		}
		if first, ok := seen[line.Order.OrderID]; ok {
			return nil, fmt.Errorf("orders line %d: order %s stands on line %d already; an order has one line", i+1, line.Order.OrderID, first)
		}
		seen[line.Order.OrderID] = i + 1
		lines = append(lines, line)
	}
	return lines, nil
}

func parseLine(text []byte) (Line, error) {
	var line Line
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&line); err != nil {
		return Line{}, err
	}
	var raw struct {
		Order json.RawMessage `json:"order"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return Line{}, err
	}
	line.Input = raw.Order
	if line.Order.OrderID == "" {
		return Line{}, fmt.Errorf("order_id is empty; every order needs one")
	}
	for i, f := range line.Faults {
		if f.Kind.fault() == nil {
			return Line{}, fmt.Errorf("fault %q is not known; take one of those in faults.go", f.Kind)
		}
		if f.Times < 0 {
			return Line{}, fmt.Errorf("fault %q has times %d; it counts calls, so write 1 or more", f.Kind, f.Times)
		}
		if f.Times == 0 {
			line.Faults[i].Times = 1
		}
	}
	return line, nil
}
