package schema

// A Gap is a rule of the checker that the schema cannot express, or only in part.
type Gap struct {
	ID  string // of the rule
	Why string
}

// Beyond lists the rules that the parser alone checks, in the order of their
// ids. A definition that the schema accepts may break these and no other.
func Beyond() []Gap {
	const (
		text  = "about the text of the file, before there are values"
		tree  = "about the whole tree: what stands elsewhere, or how much there is in all"
		flow  = "about the order in which steps run"
		typed = "about what expressions yield"
	)
	var out []Gap
	add := func(why string, ids ...string) {
		for _, id := range ids {
			out = append(out, Gap{id, why})
		}
	}
	add(text, "RG0004", "RG0005", "RG0006", "RG0007", "RG0008", "RG0009", "RG0010", "RG0011", "RG0012", "RG0013", "RG0014", "RG0015", "RG0016", "RG0017")
	add("that bytes are counted, not characters, and that not every blank of Unicode is one for every program", "RG0021")
	add("that the longest pause is not shorter than the first", "RG0025")
	add("that steps, depth and expressions are bounded in all", "RG0026")
	add("that no month has more days than it has", "RG0030")
	add("that a schema can be compiled and refers to nothing outside", "RG0031")
	add(tree, "RG0032", "RG0033", "RG0034", "RG0104")
	add("what has no effect in on_failure, or because of the file's defaults", "RG0105")
	add(flow, "RG0106", "RG0107", "RG0108")
	add("that else is the last entry", "RG0109")
	add("that a failure can happen to the step, and is caught once", "RG0111")
	add(tree, "RG0115")
	add("that names which begin with ringi. are kept", "RG0116")
	add("what is wrong with an address behind its beginning", "RG0117")
	add("which headers the engine sets itself", "RG0118")
	add(flow, "RG0208")
	add(typed, "RG0301", "RG0302", "RG0303", "RG0304", "RG0305", "RG0306", "RG0307", "RG0308", "RG0309", "RG0310", "RG0311", "RG0312", "RG0313", "RG0314", "RG0315")
	add("that so many people can agree", "RG0401")
	add(tree, "RG0403")
	return out
}
