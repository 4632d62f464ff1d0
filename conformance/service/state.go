package service

import (
	"strconv"

	"github.com/destkit/destkit/conformance/internal/wire"
)

// optional is a value that a step may have left. The zero value is none.
type optional[T any] struct {
	value T
	known bool
}

func some[T any](v T) optional[T] { return optional[T]{v, true} }

// get returns the value, and whether there is one.
func (o optional[T]) get() (T, bool) { return o.value, o.known }

// namedThings are what the texts of a scenario name in braces, such as {workspace}.
type namedThings struct {
	account
	secondWorkspace     optional[int64]
	dataset             optional[int64]
	invitation          optional[int64]
	workspaceInvitation optional[int64]
	made                optional[int64]  // what a call has made last
	member              optional[string] // the e-mail address of who joined last
	foreignWorkspace    optional[int64]
	foreignOrganization optional[string] // its personal access token

	fixed map[string]string // {this_name} and others that stay the same throughout
}

// account is where the scenario works.
type account struct{ organization, workspace, user optional[int64] }

// text returns what a name stands for, and whether it stands for anything.
func (n *namedThings) text(name string) (string, bool) {
	switch name {
	case "member":
		return n.member.get()
	case "foreign_organization":
		return n.foreignOrganization.get()
	}
	id, known := map[string]optional[int64]{
		"organization": n.organization, "workspace": n.workspace, "user": n.user,
		"second_workspace": n.secondWorkspace, "foreign_workspace": n.foreignWorkspace,
		"invitation": n.invitation, "workspace_invitation": n.workspaceInvitation,
		"dataset": n.dataset, "made": n.made,
	}[name]
	if !known {
		text, known := n.fixed[name]
		return text, known
	}
	return strconv.FormatInt(id.value, 10), id.known
}

// fix lets a name stand for the same text throughout the scenario.
func (n *namedThings) fix(name, text string) {
	if n.fixed == nil {
		n.fixed = map[string]string{}
	}
	n.fixed[name] = text
}

// latestAnswers is what claims without a kind speak of.
type latestAnswers struct {
	latest      []*answer     // of the latest When; none: the last call of the API
	callsBefore int           // calls that the destination had got before it
	listed      optional[int] // how often a list shows the destination
}

// runLife is the state of runs that begin by themselves or are held back.
type runLife struct {
	due     due
	gate    chan struct{} // holds calls of the destination back; nil when none is held
	runs    []int64       // in the order of their beginning
	batches int           // that had come when a run was canceled
}

// repeatable are calls that are made again, and what they were answered.
type repeatable struct {
	calls   *wire.DataTable
	answers []*answer
}
