// Package row describes the Lua API in rows: lines of text from which the help, the reference and the checks of options are generated. It parses
// rows, lists the named types of arguments, and reads the arguments and options of calls, with errors that name the function and the argument.
package row
