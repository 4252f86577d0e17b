// Package jsondoc writes the JSON documents that isotap's commands print.
package jsondoc

import (
	"encoding/json"
	"fmt"
	"io"
)

// Write writes a document, indented by two spaces and with a newline behind it. What says in an error what was being
// written: "the SARIF log".
func Write(w io.Writer, what string, document any) error {
	enc := json.NewEncoder(w)
	// The documents are not for embedding in HTML, and "a < b" is what people search for in them.
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(document); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
