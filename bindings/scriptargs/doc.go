// Package scriptargs implements daqiri.args: it reads the arguments that a script declares, parses those of the command line, and writes the
// script's usage.
package scriptargs
