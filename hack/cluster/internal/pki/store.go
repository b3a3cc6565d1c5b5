// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Store keeps pairs as files `<name>.crt` and `<name>.key` in one directory, readable by its owner only.
type Store struct {
	dir string
	now func() time.Time
}

// NewStore makes a store in dir, which it creates; now is the time of issue.
func NewStore(dir string, now func() time.Time) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the key directory: %w", err)
	}
	return &Store{dir: dir, now: now}, nil
}

// Authority returns the named authority, made on first use.
func (s *Store) Authority(name string) (Pair, error) {
	return s.ensure(name, func() (Pair, error) { return NewAuthority(name, s.now()) })
}

// Pair returns the named pair, issued by authority on first use.
func (s *Store) Pair(name string, authority Pair, subject Subject) (Pair, error) {
	return s.ensure(name, func() (Pair, error) { return authority.Issue(subject, s.now()) })
}

// Key makes sure that `<name>.key` and its public half `<name>.pub` exist.
func (s *Store) Key(name string) error {
	public := filepath.Join(s.dir, name+".pub")
	if _, err := os.Stat(public); err == nil {
		return nil
	}
	key, err := NewKey()
	if err != nil {
		return err
	}
	private, err := KeyPEM(key)
	if err != nil {
		return err
	}
	pub, err := PublicKeyPEM(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, name+".key"), private, 0o600); err != nil {
		return fmt.Errorf("write key %s: %w", name, err)
	}
	if err := os.WriteFile(public, pub, 0o600); err != nil {
		return fmt.Errorf("write public key %s: %w", name, err)
	}
	return nil
}

func (s *Store) ensure(name string, issue func() (Pair, error)) (Pair, error) {
	certPath, keyPath := filepath.Join(s.dir, name+".crt"), filepath.Join(s.dir, name+".key")
	pair, err := read(certPath, keyPath)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return pair, err
	}
	if pair, err = issue(); err != nil {
		return Pair{}, err
	}
	key, err := KeyPEM(pair.Key)
	if err != nil {
		return Pair{}, err
	}
	if err := os.WriteFile(keyPath, key, 0o600); err != nil {
		return Pair{}, fmt.Errorf("write key %s: %w", name, err)
	}
	// The certificate comes last: a pair without one is issued anew.
	if err := os.WriteFile(certPath, pair.CertPEM(), 0o600); err != nil {
		return Pair{}, fmt.Errorf("write certificate %s: %w", name, err)
	}
	return pair, nil
}

func read(certPath, keyPath string) (Pair, error) {
	cert, err := os.ReadFile(certPath)
	if err != nil {
		return Pair{}, fmt.Errorf("read %s: %w", certPath, err)
	}
	key, err := os.ReadFile(keyPath)
	if err != nil {
		return Pair{}, fmt.Errorf("read %s: %w", keyPath, err)
	}
	pair, err := ParsePair(cert, key)
	if err != nil {
		return Pair{}, fmt.Errorf("%s: %w", certPath, err)
	}
	return pair, nil
}
