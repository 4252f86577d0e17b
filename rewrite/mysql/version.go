package mysql

import (
	"strconv"
	"strings"
)

// ParseVersion reads the version that a server's greeting gives: "10.11.19-MariaDB-0+deb12u1",
// "5.5.5-10.11.19-MariaDB" (as MariaDB before 11 greets clients that know MySQL only), "9.7.4",
// "8.0.11-TiDB-v8.5.0". The number is Session.Version's; 0 when there is none to read.
func ParseVersion(greeting string) (Dialect, uint32) {
	switch {
	case strings.Contains(greeting, "MariaDB"):
		return MariaDB, versionNumber(strings.TrimPrefix(greeting, "5.5.5-"))
	case strings.Contains(greeting, "TiDB"):
		_, own, _ := strings.Cut(greeting, "TiDB-v")
		return TiDB, versionNumber(own)
	}
	return MySQL, versionNumber(greeting)
}

// versionNumber reads major.minor.patch, whatever follows.
func versionNumber(s string) uint32 {
	var n uint32
	for range 3 {
		end := 0
		for end < len(s) && s[end] >= '0' && s[end] <= '9' {
			end++
		}
		part, err := strconv.ParseUint(s[:end], 10, 16)
		if err != nil {
			part = 0
		}
		n = n*100 + uint32(min(part, 9999))
		s = strings.TrimPrefix(s[end:], ".")
	}
	return n
}
