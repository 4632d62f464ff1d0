package zoo_test

// rightCauses are the phrases of which a right cause has one: they are about the mistake, whatever
// the judge reports today. vagueCauses are true of a mistake and do not lead to it.
var rightCauses, vagueCauses = causesOf(causesOfNode, causesOfPython, causesOfGo, causesOfSQLite, causesOfPostgres, causesOfEventLog, causesOfExpress)

// explanation is what a row of the table has about the cause, as expressions.
type explanation struct{ right, vague string }

func causesOf(parts ...map[string]explanation) (right, vague map[string]string) {
	right, vague = map[string]string{}, map[string]string{}
	for _, part := range parts {
		for name, e := range part {
			right[name], vague[name] = e.right, e.vague
		}
	}
	return right, vague
}
