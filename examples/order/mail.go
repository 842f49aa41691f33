package order

const mailID = "mail_id"

// mailOperations is the mail service. It is told to send and it sends: it
// remembers no key and can be asked nothing.
func mailOperations() map[string]operation {
	return map[string]operation{opSend: send}
}

func send(_ *page, in request) (reply, error) {
	if in.OrderID == "" || in.To == "" {
		return badRequest("order_id or to is missing"), nil
	}
	return done(mailID), nil
}
