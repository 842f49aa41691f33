package exact

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// Bounds of a number. Everything inside them is exact; everything outside is
// refused where it enters, so that no later step has to round.
const (
	// MaxDigits is how many significant digits a number may have: what IEEE
	// 754 decimal128 holds, and far more than money needs.
	MaxDigits = 34
	// MaxExponent and MinExponent bound the place of the first digit: every
	// number that a 64-bit float can hold passes, and the plain form, which is
	// written without an exponent, stays below 400 characters.
	MaxExponent = 308
	MinExponent = -324
)

var (
	errTooManyDigits = fmt.Errorf("has more than %d digits and cannot be kept exactly; send it as text", MaxDigits)
	errOutOfRange    = fmt.Errorf("is outside 1e%d to 1e%d", MinExponent, MaxExponent)
)

// A Number is a JSON number in its one canonical form: plain decimal digits, no
// exponent, no leading or trailing zeros, no -0. Equal numbers are equal strings.
type Number string

// ParseNumber brings a JSON number, which must be well formed, into canonical form.
// It looks at the text only, so that 1e999999999 costs nothing to refuse.
func ParseNumber(text string) (Number, error) {
	if plainInteger(text) {
		return Number(text), nil
	}
	digits, negative := strings.CutPrefix(text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ReplaceAll(digits, "E", "e"), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := whole + fraction
	significant := strings.TrimLeft(all, "0")
	point := len(whole) - (len(all) - len(significant)) // digits before the point, counted from the first significant one
	significant = strings.TrimRight(significant, "0")
	if significant == "" {
		return "0", nil
	}
	if len(significant) > MaxDigits {
		return "", errTooManyDigits
	}
	shift, err := parseExponent(exponent)
	if err != nil {
		return "", err
	}
	point += shift
	if point-1 > MaxExponent || point-1 < MinExponent {
		return "", errOutOfRange
	}
	return plain(negative, significant, point), nil
}

// plainInteger reports whether text is an integer that is canonical as it
// stands, the common case.
func plainInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	if len(digits) == 0 || len(digits) > MaxDigits || digits[0] == '0' {
		return text == "0"
	}
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return false
		}
	}
	return true
}

// parseExponent reads the digits after "e"; an empty text is 0.
func parseExponent(text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > 1<<30 || n < -1<<30 {
		return 0, errOutOfRange
	}
	return n, nil
}

// plain writes significant digits with the point after the first `point` of them.
func plain(negative bool, digits string, point int) Number {
	var b strings.Builder
	if negative {
		b.WriteByte('-')
	}
	switch {
	case point <= 0:
		b.WriteString("0.")
		b.WriteString(strings.Repeat("0", -point))
		b.WriteString(digits)
	case point >= len(digits):
		b.WriteString(digits)
		b.WriteString(strings.Repeat("0", point-len(digits)))
	default:
		b.WriteString(digits[:point])
		b.WriteByte('.')
		b.WriteString(digits[point:])
	}
	return Number(b.String())
}

// Decimal returns the number for arithmetic.
func (n Number) Decimal() (*apd.Decimal, error) {
	d, _, err := apd.NewFromString(string(n))
	return d, err
}

// NumberOf returns the canonical form of d, or an error when it has too many
// digits or lies outside the bounds.
func NumberOf(d *apd.Decimal) (Number, error) {
	if d.Form != apd.Finite {
		return "", errOutOfRange
	}
	if d.IsZero() {
		return "0", nil
	}
	digits := d.Coeff.String()
	point := len(digits) + int(d.Exponent)
	digits = strings.TrimRight(digits, "0")
	if len(digits) > MaxDigits {
		return "", errTooManyDigits
	}
	if point-1 > MaxExponent || point-1 < MinExponent {
		return "", errOutOfRange
	}
	return plain(d.Negative, digits, point), nil
}

// errInexact is what + - * answer when the exact result does not fit.
var errInexact = fmt.Errorf("the exact result has more than %d digits; round an operand first", MaxDigits)

// arithmetic returns the context of exact arithmetic: a result that would have
// to be rounded is an error. It is made anew for each use because a shared one
// could be changed.
func arithmetic() apd.Context {
	return apd.Context{
		Precision: MaxDigits, MaxExponent: 2 * MaxExponent, MinExponent: 2 * MinExponent,
		Rounding: apd.RoundHalfEven,
		Traps:    apd.Inexact | apd.InvalidOperation | apd.DivisionByZero | apd.DivisionUndefined | apd.Overflow | apd.Underflow,
	}
}

// Calculate applies one of the operators + - * / % to two numbers. Only /
// rounds, half to even, to 34 digits.
func Calculate(operator byte, x, y *apd.Decimal) (*apd.Decimal, error) {
	ctx, out := arithmetic(), new(apd.Decimal)
	var condition apd.Condition
	var err error
	switch operator {
	case '+':
		condition, err = ctx.Add(out, x, y)
	case '-':
		condition, err = ctx.Sub(out, x, y)
	case '*':
		condition, err = ctx.Mul(out, x, y)
	case '/':
		if y.IsZero() {
			return nil, errors.New("division by zero")
		}
		ctx.Traps &^= apd.Inexact
		condition, err = ctx.Quo(out, x, y)
	case '%':
		if y.IsZero() {
			return nil, errors.New("division by zero")
		}
		condition, err = ctx.Rem(out, x, y)
	}
	if err != nil {
		return nil, arithmeticError(condition)
	}
	if !out.IsZero() {
		if first := int(out.NumDigits()) + int(out.Exponent) - 1; first > MaxExponent || first < MinExponent {
			return nil, errors.New("the result " + errOutOfRange.Error())
		}
	}
	return out, nil
}

func arithmeticError(c apd.Condition) error {
	if c.Overflow() || c.Underflow() {
		return errors.New("the result " + errOutOfRange.Error())
	}
	return errInexact
}

// RoundTo rounds half away from zero to the given number of decimal places,
// which may be negative.
func RoundTo(x *apd.Decimal, places int32, mode apd.Rounder) (*apd.Decimal, error) {
	if places > -MinExponent || places < -MaxExponent {
		return nil, fmt.Errorf("cannot round to %d places", places)
	}
	if x.Exponent >= -places {
		return x, nil
	}
	ctx, out := arithmetic(), new(apd.Decimal)
	ctx.Rounding, ctx.Traps = mode, apd.InvalidOperation
	if _, err := ctx.Quantize(out, x, -places); err != nil {
		return nil, errInexact
	}
	return out, nil
}
