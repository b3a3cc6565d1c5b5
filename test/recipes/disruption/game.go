// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"slices"
	"strconv"

	"github.com/seamark-dev/seamark/test/bench/page"
)

// Game is what players notice of scale-ins, rollouts and drains of their servers.
type Game struct {
	// Servers is how the servers run.
	Servers  string `json:"servers"`
	ScaleIns int    `json:"scaleIns"`
	Rollouts int    `json:"rollouts"`
	Drains   int    `json:"drains"`
	// Left are the matches that the player ended, and Interrupted those that a server ended.
	Left        int    `json:"left"`
	Interrupted int    `json:"interrupted"`
	Date        string `json:"date"`
}

// AddGame replaces what was measured of the same servers.
func (r *Results) AddGame(game Game) {
	r.Games = append(slices.DeleteFunc(r.Games, func(old Game) bool { return old.Servers == game.Servers }), game)
}

// GameTable returns a table for a page.
func GameTable(games []Game) string {
	var rows [][]string
	for _, g := range games {
		rows = append(rows, []string{
			g.Servers, strconv.Itoa(g.ScaleIns), strconv.Itoa(g.Rollouts), strconv.Itoa(g.Drains),
			strconv.Itoa(g.Left + g.Interrupted), strconv.Itoa(g.Interrupted),
		})
	}
	return page.Markdown([]string{"servers", "scale-ins", "rollouts", "drains", "matches", "interrupted matches"}, rows)
}
