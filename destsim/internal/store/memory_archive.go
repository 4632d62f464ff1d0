package store

import (
	"bytes"
	"slices"
)

// dumpedRow is a row as it was at the cut. As long as a dump runs, data is
// replaced as a whole and never edited, so that holding the slice is holding
// the record.
type dumpedRow struct {
	Row
	table string
}

// Dump holds up batches only while it notes down the rows: some fifty bytes
// for each, the records themselves are not copied.
func (m *memoryStore) Dump(fixed func(lastID int64), each func(table string, r Row) error) error {
	m.cut.Lock()
	m.dumps.Add(1)
	defer m.dumps.Add(-1)
	m.mu.RLock()
	var rows []dumpedRow
	for name, t := range m.tables {
		t.each(0, func(r *memoryRow) bool {
			rows = append(rows, dumpedRow{r.Row, name})
			return true
		})
	}
	m.mu.RUnlock()
	fixed(m.ids.Load())
	m.cut.Unlock()
	slices.SortFunc(rows, func(a, b dumpedRow) int { return int(a.ID - b.ID) })
	for _, r := range rows {
		if err := each(r.table, r.Row); err != nil {
			return err
		}
	}
	return nil
}

// memoryStage builds the tables of another content while the present ones are in use.
type memoryStage struct {
	m      *memoryStore
	tables map[string]*memoryTable
}

func (m *memoryStore) Stage() (Stage, error) {
	return &memoryStage{m: m, tables: map[string]*memoryTable{}}, nil
}

// Put leaves the index to the first batch, which knows the unique fields.
func (st *memoryStage) Put(name string, r Row) error {
	t := st.tables[name]
	if t == nil {
		t = &memoryTable{}
		st.tables[name] = t
	}
	t.append(0, r.ID, bytes.Clone(r.Data), nil)
	t.size.Add(1)
	return nil
}

// Commit waits for the batches under way: none writes into both contents.
func (st *memoryStage) Commit(lastID int64) error {
	m := st.m
	m.cut.Lock()
	defer m.cut.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tables = st.tables
	m.ids.Store(lastID)
	return nil
}

func (*memoryStage) Discard() {}
