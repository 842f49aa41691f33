package order

const reservationID = "reservation_id"

// stockOperations is the stock service: it keeps things for an order and gives
// them back, each once per key however often it is told.
func stockOperations() map[string]operation {
	return map[string]operation{opReserve: reserve, opRelease: undo(opReserve, opRelease, "released")}
}

func reserve(p *page, in request) (reply, error) {
	if in.OrderID == "" {
		return badRequest("order_id is missing"), nil
	}
	late, err := p.heard(opRelease, in.Key)
	if err != nil {
		return reply{}, err
	}
	if late {
		return refused("released_already", "this reservation was released before it came; it is not made any more"), nil
	}
	row, err := p.effective(opReserve, in.Key)
	switch {
	case err != nil:
		return reply{}, err
	case row != 0:
		return repeat(reservationID, row), nil
	case in.fault == OutOfStock:
		return refused(string(OutOfStock), "there is not enough of it in stock for order "+in.OrderID), nil
	}
	return done(reservationID), nil
}

// undo makes the operation that takes back what forward did under the same key.
// It has an effect once, and only if forward had one; it is answered well in
// any case, and the answer says under the name did whether something was undone
// by this call.
func undo(forward, op, did string) operation {
	return func(p *page, in request) (reply, error) {
		made, err := p.effective(forward, in.Key)
		if err != nil {
			return reply{}, err
		}
		undone, err := p.effective(op, in.Key)
		if err != nil {
			return reply{}, err
		}
		answer := without(nil)
		answer.effect = made != 0 && undone == 0
		answer.body = map[string]any{did: answer.effect}
		return answer, nil
	}
}
