package order

const parcelID = "parcel_id"

// shippingOperations is the shipping service: booking and cancelling are each
// done once per key, and a label is only a piece of text.
func shippingOperations() map[string]operation {
	return map[string]operation{opBook: book, opCancel: undo(opBook, opCancel, "cancelled"), opLabel: label}
}

func book(p *page, in request) (reply, error) {
	if in.OrderID == "" {
		return badRequest("order_id is missing"), nil
	}
	late, err := p.heard(opCancel, in.Key)
	if err != nil {
		return reply{}, err
	}
	if late {
		return refused("cancelled_already", "this booking was cancelled before it came; it is not made any more"), nil
	}
	row, err := p.effective(opBook, in.Key)
	switch {
	case err != nil:
		return reply{}, err
	case row != 0:
		return repeat(parcelID, row), nil
	case in.fault == BookRefused:
		return refused(string(BookRefused), "nobody delivers to where order "+in.OrderID+" goes"), nil
	}
	return done(parcelID), nil
}

// label prints the label. An order whose label is refused is refused only once
// its parcel is booked: so there is always a booking to undo, whichever of the
// two calls, which are made side by side, comes first.
func label(p *page, in request) (reply, error) {
	if in.OrderID == "" {
		return badRequest("order_id is missing"), nil
	}
	if in.fault != LabelRefused {
		return without(map[string]any{"label": "ORDER " + in.OrderID}), nil
	}
	booked, err := p.effectiveForOrder(opBook, in.OrderID)
	if err != nil {
		return reply{}, err
	}
	if !booked {
		return unavailable("the parcel is not booked yet"), nil
	}
	return refused(string(LabelRefused), "the address of order "+in.OrderID+" does not fit on a label"), nil
}
