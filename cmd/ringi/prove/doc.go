// Package prove holds the commands that check what ringi promises: replay folds
// logs again, sim plays worlds in which everything breaks, bench measures.
package prove
