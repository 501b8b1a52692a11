package control

import (
	"log"
	"log/slog"
	"os"
)

func use(l *slog.Logger) {
	l.Info("pushed")
	slog.Info("pushed")                // want `log/slog.Info is banned: log to the logger that was handed in`
	slog.Default().Info("pushed")      // want `log/slog.Default is banned`
	slog.SetDefault(l)                 // want `log/slog.SetDefault is banned`
	log.Printf("pushed")               // want `log.Printf is banned`
	log.Fatal("pushed")                // want `log.Fatal is banned`
	log.New(os.Stderr, "", 0).Print(1) // a logger of one's own
	slog.New(slog.NewTextHandler(os.Stderr, nil)).Info("x", slog.Int("n", 1))
	f := slog.Warn // want `log/slog.Warn is banned`
	f("x")
	slog.Info("pushed") //ban:allow globallog the program's own last words
}
