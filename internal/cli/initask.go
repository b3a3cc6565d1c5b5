// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/seamark-dev/seamark/internal/cli/template"
)

const (
	// maxAnswers is how often a question is asked before the command gives up.
	maxAnswers = 3
	// maxAnswerBytes is the length of the longest answer.
	maxAnswerBytes = 64 << 10
)

// question is a question to the user.
type question struct {
	text string
	// preset is the answer for an empty line.
	preset func() string
	// set sets the options. An error asks again.
	set func(answer string) error
}

// ask sets the options from the answers. Questions go to out, so that the manifest can be redirected.
func (o *InitOptions) ask(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxAnswerBytes)
	for _, q := range o.questions() {
		if err := q.ask(lines, out); err != nil {
			return err
		}
	}
	return nil
}

func (q question) ask(lines *bufio.Scanner, out io.Writer) error {
	preset := ""
	if q.preset != nil {
		preset = q.preset()
	}
	for range maxAnswers {
		if preset == "" {
			fmt.Fprintf(out, "%s: ", q.text)
		} else {
			fmt.Fprintf(out, "%s [%s]: ", q.text, preset)
		}
		if !lines.Scan() {
			fmt.Fprintln(out)
			if err := lines.Err(); err != nil {
				return fmt.Errorf("read answer: %w", err)
			}
			return fmt.Errorf("no answer to %q", q.text)
		}
		answer := lines.Text()
		if answer == "" {
			answer = preset
		}
		err := q.set(answer)
		if err == nil {
			return nil
		}
		fmt.Fprintf(out, "  %v\n", err)
	}
	return fmt.Errorf("no valid answer to %q", q.text)
}

// questions returns the questions, in order. The later ones depend on the answers to the earlier ones
// only when they are asked.
func (o *InitOptions) questions() []question {
	fromSelector := func() string {
		selector, err := draft.Selector(o.Selector)
		if err != nil {
			return ""
		}
		return draft.NameOf(selector)
	}
	handler := ""
	return []question{
		{"How to probe: exec, http, tcp or grpc", func() string { return "exec" }, func(answer string) error {
			handler = answer
			switch answer {
			case "exec", "http", "tcp", "grpc":
				return nil
			default:
				return fmt.Errorf("%q is invalid: must be exec, http, tcp or grpc", answer)
			}
		}},
		{"Command, PATH:PORT, port, or PORT/SERVICE", nil, func(answer string) error {
			o.Exec, o.HTTP, o.TCP, o.GRPC = "", "", "", ""
			*map[string]*string{"exec": &o.Exec, "http": &o.HTTP, "tcp": &o.TCP, "grpc": &o.GRPC}[handler] = answer
			_, err := o.handler()
			return err
		}},
		{"Labels of the pods, such as app=worker", nil, func(answer string) error {
			o.Selector = answer
			_, err := draft.Selector(answer)
			return err
		}},
		{"Container", fromSelector, required(&o.Container)},
		{"Name of the marker", fromSelector, required(&o.Name)},
		{"Label to set, as KEY or KEY=SUCCEEDED,FAILED (empty for none)", nil, func(answer string) error {
			o.Labels = nil
			if answer == "" {
				return nil
			}
			o.Labels = []string{answer}
			_, _, _, err := draft.Mark(answer)
			return err
		}},
		{"Condition to set, such as example.com/busy (empty for none)", nil, func(answer string) error {
			o.Condition = answer
			if answer == "" && len(o.Labels) == 0 {
				return errors.New("required: a probe must set a label or a condition")
			}
			return nil
		}},
		{"Seconds between two runs", func() string { return strconv.Itoa(int(o.Period / time.Second)) }, func(answer string) error {
			seconds, err := strconv.ParseInt(answer, 10, 32)
			if err != nil || seconds < 1 {
				return fmt.Errorf("%q is invalid: must be a number of seconds, 1 or more", answer)
			}
			o.Period = time.Duration(seconds) * time.Second
			return nil
		}},
	}
}

// required sets a value that must not be empty.
func required(value *string) func(string) error {
	return func(answer string) error {
		*value = answer
		if answer == "" {
			return errors.New("required")
		}
		return nil
	}
}
