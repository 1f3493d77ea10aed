package ros2

import "bytes"

// USER_DATA of endpoints and participants holds pairs "key=value;" (rmw_dds_common, rmw::impl::cpp::parse_key_value):
// typehash of a topic's endpoints from Iron on, serviceid and clientid of rmw_cyclonedds's services, enclave of a
// participant. Some writers put a NUL behind.

const hashPrefix = "RIHS01_"

// userValue returns the value of a key, nil if it is not there. It is part of data.
func userValue(data []byte, key string) []byte {
	data = bytes.TrimRight(data, "\x00")
	for len(data) > 0 {
		var pair []byte
		pair, data, _ = bytes.Cut(data, []byte{';'})
		k, v, ok := bytes.Cut(pair, []byte{'='})
		if ok && string(bytes.TrimSpace(k)) == key {
			return v
		}
	}
	return nil
}

// userTypeHash returns the type hash of an endpoint, nil if there is none of a form we know. It is part of data.
func userTypeHash(data []byte) []byte {
	if h := userValue(data, "typehash"); validHash(h) {
		return h
	}
	return nil
}

// validHash reports whether h is "RIHS01_" and 64 hexadecimal digits (REP 2016).
func validHash(h []byte) bool {
	digits, ok := bytes.CutPrefix(h, []byte(hashPrefix))
	if !ok || len(digits) != 64 {
		return false
	}
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
			return false
		}
	}
	return true
}

// endpointUserData is the USER_DATA of an endpoint of ours: nil without a hash, as in Humble.
func endpointUserData(hash string) []byte {
	if !validHash([]byte(hash)) {
		return nil
	}
	return []byte("typehash=" + hash + ";")
}
