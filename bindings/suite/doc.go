// Package suite tests the Lua API as scripts use it: testdata has the scripts, and sessions run on both clocks.
package suite
