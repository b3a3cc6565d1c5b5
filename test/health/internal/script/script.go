// Copyright The Seamark Authors.
// SPDX-License-Identifier: Apache-2.0

// Package script runs health checks of delivery tools, which are written in Lua.
package script

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
)

// Health is the result of a check.
type Health struct{ Status, Message string }

// Run runs a check with the decoded JSON of an object as the global variable obj. It returns an error if the check fails or returns
// no status.
func Run(text string, object map[string]any) (Health, error) {
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", value(state, object))
	if err := state.DoString(text); err != nil {
		return Health{}, fmt.Errorf("run health check: %w", err)
	}
	table, is := state.Get(-1).(*lua.LTable)
	if !is {
		return Health{}, fmt.Errorf("health check returned %s, want a table", state.Get(-1).Type())
	}
	health := Health{Status: lua.LVAsString(table.RawGetString("status")), Message: lua.LVAsString(table.RawGetString("message"))}
	if health.Status == "" {
		return health, fmt.Errorf("health check returned no status")
	}
	return health, nil
}

// value returns a decoded JSON value as one of Lua.
func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case bool:
		return lua.LBool(from)
	case string:
		return lua.LString(from)
	case int64:
		return lua.LNumber(from)
	case float64:
		return lua.LNumber(from)
	case []any:
		table := state.NewTable()
		for _, each := range from {
			table.Append(value(state, each))
		}
		return table
	case map[string]any:
		table := state.NewTable()
		for key, each := range from {
			table.RawSetString(key, value(state, each))
		}
		return table
	default:
		return lua.LNil
	}
}
