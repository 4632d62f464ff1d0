// Package command owns what all commands of the program share: how arguments are
// counted, how help texts look, what is suggested for a mistyped word, how JSON is
// printed and how an error ends the program. What one command says or does stands in
// the file or package of that command.
package command
