package source
import ("testing";"fmt")
func TestX(t *testing.T){
	src := open(t, "sqlite", map[string]any{"path": database(t, "CREATE TABLE users (id INTEGER, name TEXT, born DATE); CREATE TABLE pets (id INTEGER);")}, Options{})
	fmt.Println(src.Columns(t.Context(), Object{Query: "SELECT users.id, pets.id FROM users, pets"}))
	fmt.Println(src.Columns(t.Context(), Object{Query: "SELECT 1 AS a, 2 AS a"}))
	fmt.Println(src.Columns(t.Context(), Object{Query: "SELECT users.id, users.id FROM users, pets"}))
}
