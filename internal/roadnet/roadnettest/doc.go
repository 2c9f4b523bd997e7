// Package roadnettest makes small road maps for tests from one line of text.
package roadnettest
