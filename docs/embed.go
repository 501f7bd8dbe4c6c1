// Package docs holds the documents of this folder inside the program.
package docs

import "embed"

// Files holds each document by its path in this folder.
//
//go:embed *.md api/*.md
var Files embed.FS
