// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

package recipes

import (
	"strings"

	"github.com/seamark-dev/seamark/test/expect"
)

func openttd(s *suite) *servers {
	return &servers{suite: s, image: "docker.io/seamark/recipe-openttd", idle: "gameserver-idle", counted: `{"players":%s}`}
}

// runOpenttd scales in, updates and drains servers while players join and leave. The clients count the matches that a server
// ended: none, until servers are deleted in spite of the guard.
func runOpenttd(s *suite) {
	v := openttd(s)
	v.run()
	v.keepsOneIdle()
	s.Kubectl("apply", "-f", "examples/recipes/openttd/players")
	v.hadCosts("0", "1")
	v.replace()
	expect.Equal(s, "interrupted matches", 0, s.matches("interrupted"))
	v.hadCosts("2")
	s.Logf("matches: %d ended by the player, %d not joined", s.matches("left"), s.matches("not joined"))
	if s.matches("left") == 0 {
		s.Errorf("no player has left a match")
	}
	v.kill(func() int { return s.matches("interrupted") })
	s.Kubectl("delete", "-f", "examples/recipes/openttd/players")
	v.end()
}

// matches returns how many matches ended like this, as the clients say.
func (s *suite) matches(end string) int {
	s.Helper()
	return strings.Count(s.Kubectl("logs", "--selector=app=openttd-players", "--tail=-1"), ": "+end+"\n")
}
