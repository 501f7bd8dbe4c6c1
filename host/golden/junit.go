package golden

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Elements of a JUnit report, as read by continuous integration servers.
type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitMessage `xml:"failure"`
	Skipped *junitMessage `xml:"skipped"`
	Stderr  string        `xml:"system-err,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Body    string `xml:",chardata"`
}

func writeJUnit(path string, res Result, took time.Duration) error {
	suite := junitSuite{Name: "daqiri-run test", Tests: len(res.Tests), Failures: res.Failed, Skipped: res.Skipped,
		Time: seconds(took)}
	for _, t := range res.Tests {
		c := junitCase{Name: filepath.Base(t.Name), Class: filepath.Dir(t.Name), Time: seconds(t.Duration)}
		switch t.Status {
		case Failed:
			c.Failure, c.Stderr = &junitMessage{t.Reason, t.Detail}, t.Stderr
		case Skipped:
			c.Skipped = &junitMessage{Message: t.Reason}
		}
		suite.Cases = append(suite.Cases, c)
	}
	data, err := xml.MarshalIndent(suite, "", "  ")
	if err != nil {
		return fmt.Errorf("junit report: %w", err)
	}
	return os.WriteFile(path, append([]byte(xml.Header), append(data, '\n')...), 0o644)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
