package exact_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/cockroachdb/apd/v3"
	"pgregory.net/rapid"

	"github.com/ringiflow/ringi/workflow/exact"
)

func decimal(t testing.TB, text string) *apd.Decimal {
	t.Helper()
	n, err := exact.ParseNumber(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	d, err := n.Decimal()
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return d
}

func TestArithmeticIsExactOrRefused(t *testing.T) {
	for _, test := range []struct {
		x        string
		operator byte
		y, want  string // "" is an error
	}{
		{"0.1", '+', "0.2", "0.3"},
		{"9007199254740992", '+', "1", "9007199254740993"},
		{"1", '-', "0.9", "0.1"},
		{"19.99", '*', "3", "59.97"},
		{"9999999999999999999999999999999999", '+', "1", "1" + strings.Repeat("0", 34)},
		{"9999999999999999999999999999999999", '+', "0.1", ""},
		{"1e20", '+', "1e-20", ""},
		{"12345678901234567890", '*', "12345678901234567890", ""},
		{"1e300", '*', "1e300", ""},
		{"1e-300", '*', "1e-300", ""},
		{"1", '/', "3", "0." + strings.Repeat("3", 34)},
		{"2", '/', "3", "0." + strings.Repeat("6", 33) + "7"},
		{"1", '/', "4", "0.25"},
		{"100", '/', "10", "10"},
		{"1", '/', "0", ""},
		{"0", '/', "0", ""},
		{"10", '%', "3", "1"},
		{"-10", '%', "3", "-1"},
		{"1.5", '%', "0.4", "0.3"},
		{"1", '%', "0", ""},
		{"5", '-', "5", "0"},
		// half to even, at the 34th digit
		{"2000000000000000000000000000000001", '/', "20", "1" + strings.Repeat("0", 32)},        // …0.05
		{"2000000000000000000000000000000003", '/', "20", "1" + strings.Repeat("0", 32) + ".2"}, // …0.15
		{"4000000000000000000000000000000002", '/', "8", "5" + strings.Repeat("0", 32) + ".2"},  // …0.25
		{"4000000000000000000000000000000006", '/', "8", "5" + strings.Repeat("0", 32) + ".8"},  // …0.75
	} {
		got, err := exact.Calculate(test.operator, decimal(t, test.x), decimal(t, test.y))
		if err != nil {
			if test.want != "" {
				t.Errorf("%s %c %s: %v", test.x, test.operator, test.y, err)
			}
			continue
		}
		n, err := exact.NumberOf(got)
		if err != nil || string(n) != test.want {
			t.Errorf("%s %c %s: got %s, %v, want %q", test.x, test.operator, test.y, n, err, test.want)
		}
	}
}

func TestRoundingIsHalfAwayFromZero(t *testing.T) {
	for _, test := range []struct {
		x      string
		places int32
		want   string
	}{
		{"2.5", 0, "3"},
		{"-2.5", 0, "-3"},
		{"2.4999", 0, "2"},
		{"1.005", 2, "1.01"},
		{"1234", -2, "1200"},
		{"1250", -2, "1300"},
		{"3", 2, "3"},
		{"0.4", 0, "0"},
		{"-0.4", 0, "0"},
		{"1e300", 2, "1" + strings.Repeat("0", 300)},
		{"1e-300", 2, "0"},
	} {
		d, err := exact.RoundTo(decimal(t, test.x), test.places, apd.RoundHalfUp)
		if err != nil {
			t.Errorf("%s to %d: %v", test.x, test.places, err)
			continue
		}
		if n, err := exact.NumberOf(d); err != nil || string(n) != test.want {
			t.Errorf("%s to %d: got %s, %v, want %s", test.x, test.places, n, err, test.want)
		}
	}
}

// numeral draws a JSON number of any spelling.
func numeral(t *rapid.T, name string) string {
	return rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,14})?([eE][+-]?[0-9]{1,2})?`).Draw(t, name)
}

func rational(t *rapid.T, text string) *big.Rat {
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("%q is not a number", text)
	}
	return r
}

func TestEqualNumbersHaveOneText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := numeral(t, "x"), numeral(t, "y")
		a, errA := exact.ParseNumber(x)
		b, errB := exact.ParseNumber(y)
		if errA != nil || errB != nil {
			return
		}
		if rational(t, string(a)).Cmp(rational(t, x)) != 0 {
			t.Fatalf("%s became %s", x, a)
		}
		if (a == b) != (rational(t, x).Cmp(rational(t, y)) == 0) {
			t.Fatalf("%s is %s, %s is %s", x, a, y, b)
		}
		if strings.ContainsAny(string(a), "eE+") {
			t.Fatalf("%s became %s", x, a)
		}
	})
}

// Sums, differences and products are those of rational numbers, or refused.
func TestArithmeticAgreesWithRationalNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := numeral(t, "x"), numeral(t, "y")
		operator := rapid.SampledFrom([]byte("+-*/")).Draw(t, "operator")
		a, errA := exact.ParseNumber(x)
		b, errB := exact.ParseNumber(y)
		if errA != nil || errB != nil {
			return
		}
		da, _ := a.Decimal()
		db, _ := b.Decimal()
		got, err := exact.Calculate(operator, da, db)
		want := new(big.Rat)
		switch operator {
		case '+':
			want.Add(rational(t, x), rational(t, y))
		case '-':
			want.Sub(rational(t, x), rational(t, y))
		case '*':
			want.Mul(rational(t, x), rational(t, y))
		case '/':
			if b == "0" {
				if err == nil {
					t.Fatalf("%s / 0 is %s", x, got)
				}
				return
			}
			want.Quo(rational(t, x), rational(t, y))
		}
		if err != nil {
			if operator == '/' {
				t.Fatalf("%s / %s: %v", x, y, err)
			}
			if digits := strings.Trim(strings.Replace(want.FloatString(200), ".", "", 1), "-0"); len(digits) <= exact.MaxDigits {
				t.Fatalf("%s %c %s has only %d digits, yet: %v", x, operator, y, len(digits), err)
			}
			return
		}
		n, err := exact.NumberOf(got)
		if err != nil {
			t.Fatalf("%s %c %s: %v", x, operator, y, err)
		}
		diff := new(big.Rat).Sub(rational(t, string(n)), want)
		if operator != '/' && diff.Sign() != 0 {
			t.Fatalf("%s %c %s is %s, not %s", x, operator, y, n, want.RatString())
		}
		// A quotient is off by at most half a unit of its 34th digit.
		if bound := new(big.Rat).Mul(new(big.Rat).Abs(want), new(big.Rat).SetFrac(big.NewInt(1), new(big.Int).Exp(big.NewInt(10), big.NewInt(33), nil))); operator == '/' && diff.Abs(diff).Cmp(bound) > 0 {
			t.Fatalf("%s / %s is %s", x, y, n)
		}
	})
}
