// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"context"
	"database/sql"
	"fmt"
)

// sqlSession is a pool of one connection.
type sqlSession struct {
	*sql.DB
	insert string
}

// dialSQL returns a pool of one connection, which is made with the first statement.
func dialSQL(driver, source string) (*sql.DB, error) {
	database, err := sql.Open(driver, source)
	if err != nil {
		return nil, fmt.Errorf("connect by the driver %s: %w", driver, err)
	}
	database.SetMaxOpenConns(1)
	return database, nil
}

// openSQL returns how to open a session whose statement inserts a number into the table of writes.
func openSQL(dial func(address string) (*sql.DB, error), insert string) func(context.Context, string) (session, error) {
	return func(ctx context.Context, address string) (session, error) {
		database, err := dial(address)
		if err != nil {
			return nil, err
		}
		if _, err := database.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS writes (number int PRIMARY KEY)"); err != nil {
			_ = database.Close()
			return nil, fmt.Errorf("create a table: %w", err)
		}
		return sqlSession{database, insert}, nil
	}
}

func (s sqlSession) write(ctx context.Context, number int) error {
	_, err := s.ExecContext(ctx, s.insert, number)
	return err
}

// readSQL returns how to read the table of writes.
func readSQL(dial func(address string) (*sql.DB, error)) func(context.Context, string) (map[int]bool, error) {
	return func(ctx context.Context, address string) (map[int]bool, error) {
		database, err := dial(address)
		if err != nil {
			return nil, err
		}
		defer func() { _ = database.Close() }()
		rows, err := database.QueryContext(ctx, "SELECT number FROM writes")
		if err != nil {
			return nil, fmt.Errorf("read what was written: %w", err)
		}
		defer func() { _ = rows.Close() }()
		found := map[int]bool{}
		for rows.Next() {
			var number int
			if err := rows.Scan(&number); err != nil {
				return nil, fmt.Errorf("read a number: %w", err)
			}
			found[number] = true
		}
		return found, rows.Err()
	}
}
