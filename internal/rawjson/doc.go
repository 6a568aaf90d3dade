// Package rawjson walks JSON and writes strings without decoding values.
//
// What stands in a value keeps its bytes: callers are handed slices of their input, and read into those that concern them.
package rawjson
