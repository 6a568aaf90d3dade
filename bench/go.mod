module github.com/agora-relay/agora/bench

go 1.26.8
