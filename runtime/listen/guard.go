package listen

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
)

// Guard lets a handler answer people and programs that ask it by its own name, and no page of another origin in a browser: neither by a request
// across origins nor by a name of the page's that leads here (DNS rebinding). host is the name that the server was told to listen at. Answers
// may be put into no frame and into no other page.
func Guard(host string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Frame-Options", "DENY")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case foreign(r):
			http.Error(w, "a page of another origin may not ask this", http.StatusForbidden)
		case browser(r) && !own(r.Host, host):
			http.Error(w, "unknown host name: use the machine's address, or its name", http.StatusMisdirectedRequest)
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// browser reports whether a browser asks: programs don't send what the Fetch standard has browsers send.
func browser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" || strings.HasPrefix(r.UserAgent(), "Mozilla/")
}

// foreign reports whether a page of another origin asks. That a person follows a link of such a page is none of its business.
func foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		return err != nil || u.Host != r.Host
	}
	site := r.Header.Get("Sec-Fetch-Site")
	follows := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (site == "cross-site" || site == "same-site") && !follows
}

// own reports whether HOST or HOST:PORT is a name of this machine: an address, which no page can take for its own name, or a name that the system
// or the user gave it.
func own(asked, host string) bool {
	name := asked
	if h, _, err := net.SplitHostPort(asked); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if _, err := netip.ParseAddr(name); err == nil || name == "localhost" || name == strings.ToLower(host) {
		return true
	}
	full, _ := os.Hostname()
	full = strings.ToLower(full)
	short, _, _ := strings.Cut(full, ".")
	return full != "" && (name == full || name == short || name == short+".local")
}
