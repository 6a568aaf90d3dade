// Package workpath says which arguments of a tool are paths, and whether a path lies under a workspace's root, as it is
// spelled. Edges and agents decide by it alike.
package workpath

import (
	"strings"
	"unicode"
)

// terms are the words that name paths, in the singular and in the plural.
var terms = []string{
	"path", "paths", "file", "files", "filename", "filenames", "dir", "dirs", "directory", "directories", "folder", "folders", "root", "roots", "cwd", "cwds",
}

// compounds are words that begin with one of those and name paths.
var compounds = []string{"pathname", "pathnames", "dirname", "dirnames", "directoryname", "directorynames", "foldername", "foldernames"}

// ordinary are words that only end like those.
var ordinary = []string{"profile", "profiles", "nadir", "uproot", "uproots", "taproot", "telepath", "telepaths", "psychopath", "sociopath", "homeopath", "osteopath", "naturopath"}

// IsName reports whether an argument of this name is a path, and whatever stands below it: path, file, filename, dir,
// directory, folder, root or cwd, in the singular or the plural, is its end, or a word of it, or the end of one that
// has no other meaning. Words are told by signs between them, by digits and by the case of letters: file_name,
// filePaths, target-dir, SourceDirectories, src.path.
func IsName(name string) bool {
	words := wordsOf(name)
	for _, w := range words {
		if isWord(w) {
			return true
		}
	}
	return endsInTerm(strings.Join(words, ""))
}

// isWord reports whether a word of a name, in lower case, says that it is that of a path.
func isWord(w string) bool {
	for _, c := range compounds {
		if w == c {
			return true
		}
	}
	for _, o := range ordinary {
		if w == o {
			return false
		}
	}
	return endsInTerm(w)
}

func endsInTerm(w string) bool {
	for _, t := range terms {
		if strings.HasSuffix(w, t) {
			return true
		}
	}
	return false
}

// wordsOf returns the words of a name, in lower case.
func wordsOf(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(strings.ToUpper(string(word)))) // letters that differ in case alone are one, the long s among them
			word = word[:0]
		}
	}
	all := []rune(name)
	for i, r := range all {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsMark(r):
			end()
			continue
		case i > 0 && unicode.IsUpper(r) && (unicode.IsLower(all[i-1]) || unicode.IsUpper(all[i-1]) && i+1 < len(all) && unicode.IsLower(all[i+1])):
			end() // of filePath, and of URLPath
		}
		word = append(word, r)
	}
	end()
	return words
}
