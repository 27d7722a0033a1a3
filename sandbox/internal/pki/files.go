package pki

import (
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// ensure writes what create returns to files, unless both are there.
func ensure(files Pair, create func() (cert, key []byte, err error)) error {
	_, certErr := os.Stat(files.Cert)
	_, keyErr := os.Stat(files.Key)
	if certErr == nil && keyErr == nil {
		return nil
	}
	cert, key, err := create()
	if err != nil {
		return err
	}
	return write(files, cert, key)
}

// write writes the key last: files are complete once it is there.
func write(files Pair, cert, key []byte) error {
	if err := os.MkdirAll(filepath.Dir(files.Cert), 0o755); err != nil {
		return fmt.Errorf("creating the folder of %s: %w", files.Cert, err)
	}
	err := errors.Join(os.WriteFile(files.Cert, cert, 0o644), os.WriteFile(files.Key, key, 0o600))
	if err != nil {
		return fmt.Errorf("writing a certificate and its key: %w", err)
	}
	return nil
}

func readBlock(path, blockType string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate or key: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil || block.Type != blockType {
		return nil, fmt.Errorf("%s holds no PEM block of type %s", path, blockType)
	}
	return block.Bytes, nil
}
