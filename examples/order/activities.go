package order

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// The names under which the definition calls the activities.
const (
	InventoryReserve = "inventory.reserve"
	InventoryRelease = "inventory.release"
	PaymentCharge    = "payment.charge"
	PaymentFind      = "payment.find"
	PaymentRefund    = "payment.refund"
	ShippingBook     = "shipping.book"
	ShippingCancel   = "shipping.cancel"
	ShippingLabel    = "shipping.label"
	MailSend         = "mail.send"
)

// Activities calls the four services: one method per activity. Each takes the
// idempotency key of its step and makes at most one call; each error is a
// *Failure. The methods are safe for concurrent use; the time that they may
// take is their context's.
type Activities struct {
	Stock, Payment, Shipping, Mail string // URLs of the services, without a slash at the end

	// Client makes the calls. Nil is http.DefaultClient.
	Client *http.Client
}

// ReserveIn is the input of inventory.reserve.
type ReserveIn struct {
	OrderID string `json:"order_id"`
	Items   []Item `json:"items"`
}

// ReserveOut is the output of inventory.reserve.
type ReserveOut struct {
	ReservationID string `json:"reservation_id"`
}

// UndoIn is the input of inventory.release, payment.refund and shipping.cancel.
type UndoIn struct {
	Key string `json:"key"` // the key of the call that is to be undone
}

// ReleaseOut is the output of inventory.release.
type ReleaseOut struct {
	Released bool `json:"released"` // false if there was nothing to release any more, or ever
}

// ChargeIn is the input of payment.charge.
type ChargeIn struct {
	OrderID  string      `json:"order_id"`
	Customer string      `json:"customer"`
	Amount   json.Number `json:"amount"` // yen, an exact decimal
}

// ChargeOut is the output of payment.charge.
type ChargeOut struct {
	ChargeID string `json:"charge_id"`
}

// FindIn is the input of payment.find.
type FindIn struct {
	Key string `json:"key"` // the key of the charge that is asked about
}

// FindOut is the output of payment.find, in the form that every probe answers.
type FindOut struct {
	Applied string     `json:"applied"`          // AppliedYes, AppliedNo or AppliedUnknown
	Output  *ChargeOut `json:"output,omitempty"` // with AppliedYes, what the charge would have answered
}

// RefundOut is the output of payment.refund.
type RefundOut struct {
	Refunded bool `json:"refunded"` // false if there was nothing to refund any more, or ever
}

// BookIn is the input of shipping.book.
type BookIn struct {
	OrderID string `json:"order_id"`
}

// BookOut is the output of shipping.book.
type BookOut struct {
	ParcelID string `json:"parcel_id"`
}

// CancelOut is the output of shipping.cancel.
type CancelOut struct {
	Cancelled bool `json:"cancelled"` // false if there was nothing to cancel any more, or ever
}

// LabelIn is the input of shipping.label.
type LabelIn struct {
	OrderID string `json:"order_id"`
}

// LabelOut is the output of shipping.label.
type LabelOut struct {
	Label string `json:"label"` // the text to print
}

// MailIn is the input of mail.send.
type MailIn struct {
	OrderID string `json:"order_id"`
	To      string `json:"to"`
}

// MailOut is the output of mail.send.
type MailOut struct {
	MailID string `json:"mail_id"`
}

// Reserve keeps the items of an order in stock. It is idempotent by key.
func (a *Activities) Reserve(ctx context.Context, key string, in ReserveIn) (ReserveOut, error) {
	var out ReserveOut
	err := call(ctx, a.Client, a.Stock+"/"+opReserve, request{Key: key, OrderID: in.OrderID, Items: in.Items}, &out)
	return out, err
}

// Release gives back what was reserved under in.Key. It is idempotent by that
// key; its own key is not needed.
func (a *Activities) Release(ctx context.Context, _ string, in UndoIn) (ReleaseOut, error) {
	var out ReleaseOut
	err := call(ctx, a.Client, a.Stock+"/"+opRelease, request{Key: in.Key}, &out)
	return out, err
}

// Charge takes the amount from the customer. It is not idempotent: after a
// failure whose Applied is unknown, ask Find before trying again.
func (a *Activities) Charge(ctx context.Context, key string, in ChargeIn) (ChargeOut, error) {
	var out ChargeOut
	err := call(ctx, a.Client, a.Payment+"/"+opCharge, request{Key: key, OrderID: in.OrderID, Customer: in.Customer, Amount: in.Amount}, &out)
	return out, err
}

// Find asks what became of the charge with the key in.Key. That the service
// cannot be asked is an answer too, AppliedUnknown, and no error.
func (a *Activities) Find(ctx context.Context, _ string, in FindIn) (FindOut, error) {
	var out FindOut
	err := call(ctx, a.Client, a.Payment+"/"+opFind, request{Key: in.Key}, &out)
	var f *Failure
	if errors.As(err, &f) && f.Retryable {
		return FindOut{Applied: AppliedUnknown}, nil
	}
	return out, err
}

// Refund gives back what was charged under in.Key. It is idempotent by that
// key; its own key is not needed.
func (a *Activities) Refund(ctx context.Context, _ string, in UndoIn) (RefundOut, error) {
	var out RefundOut
	err := call(ctx, a.Client, a.Payment+"/"+opRefund, request{Key: in.Key}, &out)
	return out, err
}

// Book books a parcel. It is idempotent by key.
func (a *Activities) Book(ctx context.Context, key string, in BookIn) (BookOut, error) {
	var out BookOut
	err := call(ctx, a.Client, a.Shipping+"/"+opBook, request{Key: key, OrderID: in.OrderID}, &out)
	return out, err
}

// Cancel cancels what was booked under in.Key. It is idempotent by that key;
// its own key is not needed.
func (a *Activities) Cancel(ctx context.Context, _ string, in UndoIn) (CancelOut, error) {
	var out CancelOut
	err := call(ctx, a.Client, a.Shipping+"/"+opCancel, request{Key: in.Key}, &out)
	return out, err
}

// Label returns the text for the parcel's label. It changes nothing.
func (a *Activities) Label(ctx context.Context, key string, in LabelIn) (LabelOut, error) {
	var out LabelOut
	err := call(ctx, a.Client, a.Shipping+"/"+opLabel, request{Key: key, OrderID: in.OrderID}, &out)
	return out, err
}

// Send sends the mail that tells the customer. Sending twice sends two mails.
func (a *Activities) Send(ctx context.Context, key string, in MailIn) (MailOut, error) {
	var out MailOut
	err := call(ctx, a.Client, a.Mail+"/"+opSend, request{Key: key, OrderID: in.OrderID, To: in.To}, &out)
	return out, err
}
