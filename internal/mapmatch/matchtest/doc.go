// Package matchtest judges matches against a known truth. It knows nothing of how they were made.
package matchtest
