package event_test

var kinds = []kind{newReal("epoll"), newReal("std"), newSim}
