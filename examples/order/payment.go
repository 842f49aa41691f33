package order

const chargeID = "charge_id"

// paymentOperations is the payment service. It is not idempotent: who charges
// twice with one key has charged twice. But it can be asked what became of a
// key, and a refund by the key of the charge refunds once.
func paymentOperations() map[string]operation {
	return map[string]operation{opCharge: charge, opFind: find, opRefund: undo(opCharge, opRefund, "refunded")}
}

func charge(p *page, in request) (reply, error) {
	if in.OrderID == "" || in.Customer == "" || in.Amount == "" {
		return badRequest("order_id, customer or amount is missing"), nil
	}
	late, err := p.heard(opRefund, in.Key)
	switch {
	case err != nil:
		return reply{}, err
	case late:
		return refused("refunded_already", "this charge was refunded before it came; it is not made any more"), nil
	case in.fault == CardDeclined:
		return refused(string(CardDeclined), "the bank of "+in.Customer+" declined the charge"), nil
	}
	return done(chargeID), nil
}

func find(p *page, in request) (reply, error) {
	row, err := p.effective(opCharge, in.Key)
	if err != nil {
		return reply{}, err
	}
	if row == 0 {
		return without(map[string]any{"applied": AppliedNo}), nil
	}
	return without(map[string]any{"applied": AppliedYes, "output": map[string]any{chargeID: callID(chargeID, row)}}), nil
}
