package rowsort

// SortTurn is held by the sort that takes a wide row to disk.
var SortTurn = sortTurn
