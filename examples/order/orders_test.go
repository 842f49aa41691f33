package order_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/ringiflow/ringi/examples/order"
)

func allLines(t *testing.T) []order.Line {
	t.Helper()
	lines, err := order.Lines(0)
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestThereAreAHundredOrdersMostOfThemCheap(t *testing.T) {
	lines, cheap := allLines(t), 0
	for _, line := range lines {
		if !line.Order.NeedsApproval() {
			cheap++
		}
	}
	if len(lines) != 100 || cheap <= 50 {
		t.Errorf("%d orders, %d of them cheap; want 100, more than half of them cheap", len(lines), cheap)
	}
}

func TestTheFirst25OrdersHoldEveryKind(t *testing.T) {
	lines, err := order.Lines(25)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 25 {
		t.Fatalf("%d lines", len(lines))
	}
	seen := map[order.Kind]bool{}
	for _, line := range lines {
		seen[line.Kind()] = true
	}
	for _, kind := range order.Kinds() {
		if !seen[kind] {
			t.Errorf("no order of kind %s", kind)
		}
		if kind.Title() == string(kind) {
			t.Errorf("kind %s has no title for people", kind)
		}
	}
}

// expectation derives from an order's amount, faults and votes what must come
// of it, the way a reader of the definition would.
func expectation(line order.Line) order.Expect {
	has := func(kind order.Kind) bool {
		return slices.ContainsFunc(line.Faults, func(f order.Fault) bool { return f.Kind == kind })
	}
	rejected := slices.ContainsFunc(line.People, func(v order.Vote) bool { return v.Vote == "reject" })
	undone := func(status string, b order.Books) order.Expect { return order.Expect{Status: status, Books: b} }
	switch {
	case has(order.OutOfStock):
		return undone("failed", order.Books{})
	case has(order.CancelAtApproval):
		return undone("cancelled", order.Books{Reserved: 1, Released: 1})
	case rejected, has(order.CardDeclined):
		return undone("compensated", order.Books{Reserved: 1, Released: 1})
	case has(order.BookRefused):
		return undone("compensated", order.Books{Reserved: 1, Released: 1, Charged: 1, Refunded: 1})
	case has(order.LabelRefused):
		return undone("compensated", order.Books{Reserved: 1, Released: 1, Charged: 1, Refunded: 1, Shipped: 1})
	}
	return order.Expect{Status: "completed", Books: order.Books{Reserved: 1, Charged: 1, Shipped: 1, Mails: 1}}
}

func TestEveryOrderExpectsWhatItsFaultsMean(t *testing.T) {
	for _, line := range allLines(t) {
		if got, want := line.Expect, expectation(line); got != want {
			t.Errorf("%s expects %+v, and its faults mean %+v", line.Order.OrderID, got, want)
		}
	}
}

func TestPeopleAreAskedExactlyWhereTheAmountAsksForThem(t *testing.T) {
	for _, line := range allLines(t) {
		id, approvers := line.Order.OrderID, map[string]bool{}
		rejects := false
		for _, v := range line.People {
			if v.Who != "alice" && v.Who != "bob" {
				t.Errorf("%s: %s is not of finance", id, v.Who)
			}
			if v.Vote != "approve" && v.Vote != "reject" {
				t.Errorf("%s: vote %q", id, v.Vote)
			}
			if approvers[v.Who] {
				t.Errorf("%s: %s votes twice", id, v.Who)
			}
			approvers[v.Who] = true
			rejects = rejects || v.Vote == "reject"
		}
		// An order that is out of stock fails before anybody is asked.
		asked := line.Order.NeedsApproval() && line.Kind() != order.OutOfStock
		switch {
		case !asked && (len(line.People) > 0 || line.CancelAtApproval()):
			t.Errorf("%s: nobody is asked, and somebody answers", id)
		case asked && line.CancelAtApproval() && len(line.People) > 0:
			t.Errorf("%s: is cancelled before anybody votes", id)
		case asked && !line.CancelAtApproval() && !rejects && len(approvers) != 2:
			t.Errorf("%s: %d people approve, and two have to", id, len(approvers))
		}
	}
}

func TestAmountsAtTheBorderAreExact(t *testing.T) {
	for amount, want := range map[string]bool{
		"99999.99": false, "100000": false, "100000.00": false, "100000.01": true, "9007199254740993": true,
	} {
		found := slices.ContainsFunc(allLines(t), func(l order.Line) bool {
			return l.Order.Amount == json.Number(amount) && l.Order.NeedsApproval() == want
		})
		if !found {
			t.Errorf("no order over %s whose need of approval is %v", amount, want)
		}
	}
}

func TestOrdersFileIsCutAtLinesByteForByte(t *testing.T) {
	all := order.OrdersFile(0)
	if got := order.OrdersFile(1000); !bytes.Equal(got, all) {
		t.Errorf("1000 orders are not all of them")
	}
	three := order.OrdersFile(3)
	if !bytes.HasPrefix(all, three) || bytes.Count(three, []byte("\n")) != 3 || !bytes.HasSuffix(three, []byte("}\n")) {
		t.Errorf("three orders are:\n%s", three)
	}
	for _, line := range allLines(t) {
		if !bytes.Contains(all, append([]byte(`{"order":`), line.Input...)) {
			t.Errorf("input of %s is not as it stands in the file", line.Order.OrderID)
		}
	}
}

func TestParseLinesSaysWhichLineIsWrong(t *testing.T) {
	const good = `{"order":{"order_id":"o1","customer":"c","amount":1,"items":[]},"faults":[],"expect":{"status":"completed","books":{}}}`
	for _, tc := range []struct{ name, text, want string }{
		{"not JSON", good + "\nnot JSON", "line 2"},
		{"unknown field", `{"ordre":{}}`, "ordre"},
		{"no order id", `{"order":{}}`, "line 1: order_id is empty"},
		{"unknown fault", strings.Replace(good, `[]},"faults":[]`, `[]},"faults":[{"kind":"meteor"}]`, 1), `"meteor"`},
		{"faults that never come", strings.Replace(good, `[]},"faults":[]`, `[]},"faults":[{"kind":"book_flaky","times":-1}]`, 1), "times -1"},
		{"one order twice", good + "\n\n" + good, "line 3: order o1 stands on line 1 already"},
	} {
		_, err := order.ParseLines(strings.NewReader(tc.text))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
}

// W1
func TestDefinitionCallsTheActivitiesThatThereAre(t *testing.T) {
	var doc struct {
		Name  string
		Steps yaml.Node
	}
	if err := yaml.Unmarshal(order.Definition(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Name != order.DefinitionName {
		t.Errorf("name is %q", doc.Name)
	}
	got := map[string]bool{}
	ids := map[string]bool{}
	collect(&doc.Steps, "activity", got)
	collect(&doc.Steps, "id", ids)
	want := []string{
		order.InventoryReserve, order.InventoryRelease, order.PaymentCharge, order.PaymentFind, order.PaymentRefund,
		order.ShippingBook, order.ShippingCancel, order.ShippingLabel, order.MailSend,
	}
	for _, name := range want {
		if !got[name] {
			t.Errorf("the definition does not call %s", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the definition calls %v, want %v", got, want)
	}
	if !ids[order.ApprovalStep] || !ids[order.MailStep] {
		t.Errorf("steps are %v; want %s and %s among them", ids, order.ApprovalStep, order.MailStep)
	}
}

// collect adds the scalar values that stand under key anywhere below node.
func collect(node *yaml.Node, key string, into map[string]bool) {
	if node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == key && node.Content[i+1].Kind == yaml.ScalarNode {
				into[node.Content[i+1].Value] = true
			}
		}
	}
	for _, child := range node.Content {
		collect(child, key, into)
	}
}
