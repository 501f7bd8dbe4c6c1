package session

import "fmt"

// AbandonedError says that a stage did not end: what it waits for, a device mostly, let none of its packets go for 5 s. They
// count as stopped; its memory and its thread stay for as long as the process.
type AbandonedError struct{ Stage string }

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("stage %s did not end: for 5 s its device took nothing of what it held, which is lost; "+
		"hint: look at the disk, or at the network that it hangs on", e.Stage)
}

// AbandonedIn names the stages of those errors that err joins.
func AbandonedIn(err error) (stages []string) {
	if e, ok := err.(*AbandonedError); ok {
		return []string{e.Stage}
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			stages = append(stages, AbandonedIn(e)...)
		}
	}
	return stages
}
