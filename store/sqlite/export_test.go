package sqlite

import "context"

// Exec runs a statement on the writer's connection, to bring a test's database
// into a state in which nothing else would.
func (s *Store) Exec(text string) error {
	_, err := s.writer.ExecContext(context.Background(), text)
	return err
}

// Number reads one number on the writer's connection.
func (s *Store) Number(text string) (n int64, err error) {
	err = s.writer.QueryRowContext(context.Background(), text).Scan(&n)
	return n, err
}

// Cell reads one text on the writer's connection.
func (s *Store) Cell(text string) (cell string, err error) {
	err = s.writer.QueryRowContext(context.Background(), text).Scan(&cell)
	return cell, err
}
